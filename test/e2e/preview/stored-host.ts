// In-memory host for the Collapse page: answers requests from a stored run (fixtures/stored-run.mjs) as the extension
// host answers them from a run folder.
import {
  collapseFamilyAt,
  collapseKeys,
  collapseReady,
  gradientsAt,
  groupsAt,
  type CollapseSnapshot,
} from '../../../extension/protocol/collapse-page';
import { collapseSettings } from '../../../extension/run-data/collapse-settings';
import { promptGroups } from '../../../extension/vscode/run-files/episodes/prompt-groups';
import { collapseFile, gradientsFile, type CollapseDiagnosis } from '../../../extension/run-data/diagnostics';
import { parseMetricMeanings } from '../../../extension/run-data/metric-meanings';
import { columnsOf, numbersOf } from '../../../extension/run-data/metric-segments';
import { episodesFile, groupsFile } from '../../../extension/run-data/run-file-names';
import type { Episode } from '../../../extension/run-data/episode';
import type { Manifest } from '../../../extension/run-data/run-manifest';
import type { RunEvent } from '../../../extension/run-data/run-events';
import type { RunStatus } from '../../../extension/run-data/run-status-file';
import { rowOf } from './data';
import type { MemoryHost } from './memory-host';

/** Text by file name. */
export type StoredFiles = Record<string, string>;

/**
 * `metrics` is the text of docs/METRICS.md. `until` is the last step of the run, which then appears to be running. The
 * run's lines are repeated `times` times, to simulate a long run.
 */
export function storedHost(files: StoredFiles, metrics: string, until = Infinity, times = 1): MemoryHost {
  const linesOf = <T>(name: string): T[] =>
    (files[name] ?? '')
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as T);
  const one = <T>(name: string): T | null => (name in files ? (JSON.parse(files[name]) as T) : null);
  const manifest = one<Manifest>('manifest.json')!;
  const status = one<RunStatus>('status.json')!;
  const { id, name, created, config_name } = manifest;
  const live = Number.isFinite(until);
  const run = {
    id,
    name,
    created,
    config_name,
    folder: `/work/.ragen/runs/${id}`,
    status: live ? { ...status, state: 'running' as const, phase: 'rollout', step: Math.max(0, until) } : status,
    live,
  };
  const steps = (kind: string) =>
    Object.keys(files)
      .flatMap(file => new RegExp(`^diagnostics/${kind}-(\\d+)\\.jsonl?$`).exec(file)?.[1] ?? [])
      .map(Number)
      .filter(step => step <= until);
  const answers: Record<string, (params: never) => unknown> = {
    [collapseReady.method](): CollapseSnapshot {
      const once = linesOf<object>('metrics.jsonl').flatMap(line => numbersOf(line) ?? []);
      const length = once[once.length - 1].step;
      const lines = Array.from({ length: times }, (_, again) =>
        once.filter(({ step }) => again === 0 || step > 0).map(line => ({ ...line, step: line.step + again * length })),
      )
        .flat()
        .filter(({ step }) => step <= until);
      const columns = columnsOf(lines);
      return {
        run,
        steps: lines.map(({ step }) => step),
        series: Object.fromEntries([...columns].filter(([key]) => collapseKeys.test(key))),
        events: linesOf<RunEvent>('events.jsonl').filter(
          ({ kind, step }) => ['alarm', 'setting'].includes(kind) && step <= until,
        ),
        meanings: parseMetricMeanings(metrics),
        settings: collapseSettings(manifest),
        diagnosed: { gradients: steps('gradients'), groups: steps('groups') },
        checkpoints: [],
        scoredBy: null,
      };
    },
    [collapseFamilyAt.method]: ({ step, family }: { step: number; family: string }) =>
      one<CollapseDiagnosis>(collapseFile(step))?.families.find(found => found.name === family) ?? null,
    [gradientsAt.method]: ({ step }: { step: number }) => one(gradientsFile(step)),
    [groupsAt.method]: ({ step }: { step: number }) =>
      promptGroups(linesOf<Episode>(episodesFile('train', step)).map(rowOf), linesOf(groupsFile(step))),
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
