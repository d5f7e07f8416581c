// Trains a run to its end in the test's own process, by default of the configuration `words`, and reads its results.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { meaningOf, parseMetricMeanings } from '../../extension/run-data/metric-meanings';
import type { Episode } from '../../extension/run-data/episode';
import type { MetricsLine } from '../../extension/run-data/step-lines';
import { Journal } from '../../extension/trainer/run/journal';
import { RunControl } from '../../extension/trainer/run/run-control';
import { makeRun } from '../../extension/cli/run-lifecycle/make-run';
import { train } from '../../extension/trainer/loop/train';
import { readRun } from './terminal';
import { groupOverrides, stepOverrides } from './tiny-overrides';
import { root } from './workspace';
import type { Workspace } from './workspace';
import { openRun } from '../../extension/trainer/run/open-run';

const meanings = parseMetricMeanings(readFileSync(join(root, 'docs/METRICS.md'), 'utf8'));
/** Descriptions of the metrics whose names do not contain an environment's tag. */
const general = Object.fromEntries(Object.entries(meanings).filter(([key]) => !key.includes('<tag>')));

/** Metric keys that docs/METRICS.md does not list. */
export const unknownKeys = (lines: readonly MetricsLine[]): string[] =>
  [...new Set(lines.flatMap(line => Object.keys(line)))].filter(
    key => meaningOf(key.split('/')[1] === 'Words' ? meanings : general, key) === undefined,
  );

export interface Trained {
  /** The run's folder. */
  folder: string;
  /** One per step. */
  lines: MetricsLine[];
  /** Training and validation episodes. */
  episodes: Episode[];
  validation: Episode[];
  events: string[];
  end: 'finished' | 'stopped';
}

/** Trains a new run with overrides; the default overrides disable validation. `look` receives the run's control. */
export async function trainHere(
  workspace: Workspace,
  overrides: readonly string[],
  steps = 2,
  look: (control: RunControl) => void = () => undefined,
  configName = 'words',
): Promise<Trained> {
  const { folder } = await makeRun({
    configName,
    overrides: [...stepOverrides(steps), 'trainer.test_freq=-1', ...groupOverrides('val', [1]), ...overrides],
    workspace: workspace.folder,
  });
  const status = {
    ...{ state: 'running' as const, step: 0, total_steps: steps, success: null, reward: null },
    ...{ tokens_per_s: null, eta_s: null, phase: 'idle', updated: new Date().toISOString() },
  };
  const deaf = { status: () => undefined, appended: () => undefined, event: () => undefined };
  const journal = new Journal(folder, deaf, status, 0);
  const control = new RunControl(() => undefined);
  look(control);
  const { run, state } = await openRun({ folder, workspace: workspace.folder, checkpoint: null, control, journal });
  try {
    const end = await train(run, state);
    await journal.sync();
    const { metrics, episodes, events } = readRun(folder.path);
    return {
      folder: folder.path,
      lines: metrics,
      episodes: episodes.filter(({ mode }) => mode === 'train'),
      validation: episodes.filter(({ mode }) => mode === 'val'),
      events: events.map(({ kind, message }) => `${kind}: ${message}`),
      end,
    };
  } finally {
    await run.close();
    await journal.close();
  }
}

export const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;

/** Unbiased standard deviation. */
export const deviation = (values: readonly number[]): number =>
  Math.sqrt(values.reduce((sum, x) => sum + (x - mean(values)) ** 2, 0) / (values.length - 1));

export const groupsOf = (episodes: readonly Episode[]): Episode[][] =>
  [...new Set(episodes.map(e => e.group_id))].map(id => episodes.filter(e => e.group_id === id));

/** Overrides that make the rollout filter keep all groups. */
export const keepAll = [
  'actor_rollout_ref.rollout.rollout_filter_value=1',
  'actor_rollout_ref.rollout.rollout_filter_include_zero=true',
];
