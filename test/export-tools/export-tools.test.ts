// Exported runs are read by the tools that they are made for: Parquet by pyarrow, ATIF by Harbor's models, and metrics
// by Weights & Biases and trackio with the commands of docs/TERMINAL.md. Nothing is sent anywhere.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { episodeSchema, type Episode } from '../../extension/run-data/episode';
import { metricsLineSchema, type MetricsLine } from '../../extension/run-data/step-lines';
import { exportRun } from '../../extension/vscode/run-files/run-export';
import { RunReader } from '../../extension/vscode/run-files/run-reader';
import { restoreRun } from '../e2e/fixtures/stored-run.mjs';
import { attachOnce } from '../support/attached';
import { scoreAndCall } from '../support/scored-calls';
import { document } from '../support/terminal';

const tools = resolve(import.meta.dirname, '../../.export-tools');
const installed = existsSync(join(tools, 'installed'));
if (!installed && process.env.RAGEN_REQUIRE_EXPORT_TOOLS === '1')
  throw new Error(
    'RAGEN_REQUIRE_EXPORT_TOOLS is set, but the tools are missing: run node test/export-tools/install.mjs',
  );

let workspace: string;
let run: string;
beforeAll(() => {
  workspace = mkdtempSync(join(tmpdir(), 'ragen-export-'));
  run = restoreRun(workspace, 'lake-run');
  scoreAndCall(run);
});
afterAll(() => rmSync(workspace, { recursive: true, force: true }));

/** Runs a Python file in the workspace, without access to accounts or servers; returns its output. */
function python(file: string, ...args: string[]): string {
  const env = {
    ...{ PATH: process.env.PATH, HOME: workspace, TRACKIO_DIR: join(workspace, 'trackio') },
    ...{ WANDB_MODE: 'offline', HF_HUB_OFFLINE: '1', PYTHONUTF8: '1' },
  };
  return execFileSync(join(tools, 'bin', 'python'), [file, ...args], {
    encoding: 'utf8',
    ...{ cwd: workspace, env, maxBuffer: 2 ** 28 },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}
const linesOf = (text: string): unknown[] =>
  text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line) as unknown]));
const script = (name: string): string => join(import.meta.dirname, name);

/** All episodes of a run by their ids. */
function episodesOf(folder: string): Map<string, Episode> {
  const files = readdirSync(join(folder, 'episodes')).filter(name => /^(?:step|val)-\d+\.jsonl$/.test(name));
  const lines = files.flatMap(name => linesOf(readFileSync(join(folder, 'episodes', name), 'utf8')));
  return new Map(
    lines.map(line => episodeSchema.parse(line)).map((episode): [string, Episode] => [episode.id, episode]),
  );
}

/** The row of the Parquet table that an episode must be. */
function rowOf(runId: string, episode: Episode): Record<string, unknown> {
  const { id, environment, turns, tokens, ...rest } = episode;
  const { step, mode, tag, seed, group_id, member, success, score, reward, penalty, messages } = rest;
  return {
    ...{ run: runId, episode: id, step, mode, tag, environment: environment.name, version: environment.version, seed },
    ...{ group_id, member, success, score, reward, penalty, role: null, messages },
    turns: turns.map(
      ({ turn, state, raw, thought, answer, executed, reward: own, penalty: fine, finish, ...more }) => ({
        ...{ turn, state, raw, thought, answer, executed, reward: own, penalty: fine, finish },
        component_reward: more.component_reward ?? null,
        components: more.components ? JSON.stringify(more.components) : null,
        calls: more.calls?.map(call => ({ ...call, arguments: JSON.stringify(call.arguments) })) ?? null,
      }),
    ),
    ...{ token_ids: tokens.ids, token_mask: tokens.mask, token_logprobs: tokens.logprobs },
  };
}

async function exported(id: string, format: string, out: string): Promise<void> {
  const { code, stderr } = await document(workspace, ['export', '--run', id, '--format', format, '--out', out]);
  expect(code, stderr).toBe(0);
}

describe.skipIf(!installed)('the readers of exported runs', () => {
  test('pyarrow reads from Parquet what was written', async () => {
    const { folder } = await attachOnce(workspace, 'test/golden/foreign-runs/verl'); // its success is unknown
    for (const path of [run, folder.path]) {
      const id = basename(path);
      const file = join(workspace, `${id}.parquet`);
      await exported(id, 'parquet', file);
      const rows = linesOf(python(script('read_parquet.py'), file)) as { episode: string }[];
      const episodes = episodesOf(path);
      expect(rows).toHaveLength(episodes.size);
      for (const row of rows) expect(row).toEqual(rowOf(id, episodes.get(row.episode)!));
    }
  });

  test('Harbor accepts the trajectories, and its models keep every field', async () => {
    const out = join(workspace, 'trajectories');
    await exported(basename(run), 'atif', out);
    const files = readdirSync(out).sort();
    const written = files.map(name => JSON.parse(readFileSync(join(out, name), 'utf8')) as unknown);
    const checked = linesOf(python(script('check_atif.py'), out)) as { errors: string[]; trajectory: unknown }[];
    expect(checked).toHaveLength(episodesOf(run).size);
    expect(checked.flatMap(({ errors }) => errors)).toEqual([]);
    for (const [i, { trajectory }] of checked.entries()) expect(trajectory).toEqual(written[i]);
  });

  describe('metrics.csv with the commands of docs/TERMINAL.md', () => {
    const text = readFileSync('docs/TERMINAL.md', 'utf8');
    const section = text.slice(text.indexOf('#### MLflow, Weights & Biases, trackio'));
    const blocks = [...section.matchAll(/```python\n(.*?)```/gs)].map(([, code]) => code);
    let metrics: MetricsLine[];

    beforeAll(async () => {
      const reader = new RunReader(run);
      await reader.refresh();
      await exportRun(reader, ['metrics'], join(workspace, 'exported'));
      writeFileSync(join(workspace, 'metrics.csv'), readFileSync(join(workspace, 'exported', 'metrics.csv')));
      const lines = linesOf(readFileSync(join(run, 'metrics.jsonl'), 'utf8'));
      metrics = lines.map(line => metricsLineSchema.parse(line));
    });

    /** Runs the documented code that imports a package. */
    function documented(name: string): void {
      const [code] = blocks.filter(block => block.includes(`import csv, ${name}\n`));
      const file = join(workspace, `with-${name}.py`);
      writeFileSync(file, code);
      python(file);
    }

    /** Compares rows with the run's metrics; `own` are keys that a tool adds. */
    function expectMetrics(rows: Record<string, unknown>[], stepKey: string, own: readonly string[]): void {
      const kept = rows.map(row => Object.fromEntries(Object.entries(row).filter(([key]) => !own.includes(key))));
      const wanted = metrics.map(({ time: _, step, ...values }) => ({ [stepKey]: step, ...values }));
      expect(kept).toEqual(wanted);
    }

    test('Weights & Biases', () => {
      documented('wandb');
      const rows = linesOf(python(script('read_wandb.py'), workspace)) as Record<string, unknown>[];
      expectMetrics(rows, '_step', ['_timestamp', '_runtime']);
    });

    test('trackio', () => {
      documented('trackio');
      const rows = linesOf(python(script('read_trackio.py'), 'ragen', 'quickstart')) as Record<string, unknown>[];
      expectMetrics(rows, 'step', ['timestamp']);
    });
  });
});
