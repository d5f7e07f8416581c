// Fuzz targets for run folders, which may come from untrusted sources. Each file is read by all its readers in the
// editor and the trainer.
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve, sep } from 'node:path';
import { fileCoverage } from '../../extension/vscode/environments/environment-coverage';
import { EpisodeIndexReader } from '../../extension/vscode/run-files/episodes/episode-index-reader';
import { indexOfFile } from '../../extension/vscode/run-files/episodes/episode-scan';
import type { EpisodeScanner } from '../../extension/vscode/run-files/episodes/episode-scan';
import { JsonLines } from '../../extension/node/json-lines';
import { MetricColumns } from '../../extension/vscode/run-files/metrics/metric-columns';
import { readLabels } from '../../extension/vscode/run-files/run-labels';
import { RunReader } from '../../extension/vscode/run-files/run-reader';
import { RunDiagnostics } from '../../extension/vscode/run-files/run-diagnostics';
import { replayCase } from '../../extension/vscode/traces/commands/replay';
import { traceOf } from '../../extension/vscode/traces/trace-text';
import { tokenBytes } from '../../extension/vscode/traces/tokens/token-bytes';
import { jsonOrNothing } from '../../extension/common/json';
import { collapseFile, gradientsFile } from '../../extension/run-data/diagnostics';
import type { CollapseDiagnosis, GradientAnalysisRecord } from '../../extension/run-data/diagnostics';
import { addToIndex, indexColumns, indexLine, isIndexLine } from '../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../extension/run-data/episode-table';
import { columnsOf, decodeSegments, encodeSegment, numbersOf } from '../../extension/run-data/metric-segments';
import { coverageLineSchema } from '../../extension/run-data/environment-snapshot';
import { environmentFile, runFiles } from '../../extension/run-data/run-file-names';
import { episodeSchema } from '../../extension/run-data/episode';
import { scoresLineSchema } from '../../extension/run-data/step-lines';
import type { Episode } from '../../extension/run-data/episode';
import { configInEffect } from '../../extension/run-data/changeable-settings';
import { changedConfig } from '../../extension/trainer/run/stored-config';
import { newestValid } from '../../extension/trainer/store/newest-checkpoint';
import { readLease } from '../../extension/trainer/store/held-lease';
import { RunFolder } from '../../extension/trainer/store/run-folder';
import { versionsOf } from '../../extension/cli/env/versions';
import { Escaped, holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';
import { keptEnvironment } from '../../extension/trainer/store/environment-store';

const version = '0123456789abcdef';
const manifest = {
  ...{
    schema: 1,
    id: '20260101-000000-a-1234',
    name: 'a',
    created: '2026-01-01T00:00:00.000Z',
    config_name: 'a',
    overrides: ['a.b=1'],
  },
  ...{
    config: {
      trainer: { total_training_steps: 5, test_freq: 1 },
      custom_envs: { A: { env_type: 'bandit', env_config: {} } },
    },
  },
  ...{ config_hash: 'x', seeds: { train: 1 }, versions: { node: '20' }, hardware: { cpu: 'x', cores: 4 } },
  model: { path: 'm', sha256: 'x', parameters: 1000 },
  environments: [{ tag: 'A', name: 'bandit', source: '/envs/bandit.ts', version }],
  sweep: { id: 's', point: 'lr=1' },
  tags: ['one'],
};
const status = {
  state: 'running',
  step: 3,
  total_steps: 10,
  success: 0.5,
  reward: null,
  tokens_per_s: 10,
  eta_s: 5,
  phase: 'rollout',
  updated: '2026-01-01T00:00:00.000Z',
};
const kept = {
  version,
  name: 'bandit',
  kept: '2026-01-01T00:00:00.000Z',
  root: '/envs',
  entry: 'bandit.ts',
  sources: ['bandit.ts', 'lib/arms.ts'],
};
const lease = { pid: 999_999, started: '2026-01-01T00:00:00.000Z', endpoint: '/tmp/s', token: 't' };
const lines = (...values: unknown[]): string => values.map(value => `${JSON.stringify(value)}\n`).join('');
const metrics = lines(
  { step: 1, time: '2026-01-01T00:00:00.000Z', wall_s: 1.5, 'rollout/success': 0.5, 'actor/loss': -0.1 },
  { step: 2, time: '2026-01-01T00:00:01.000Z', wall_s: 2.5, 'rollout/success': 0.6, note: 'text' },
);
const event = (kind: string, data: object) => ({ time: '2026-01-01T00:00:00.000Z', step: 2, kind, message: 'x', data });
const events = lines(
  event('setting', { key: 'trainer.test_freq', from: 1, to: 2 }),
  event('environment_reload', {
    tag: 'A',
    from: version,
    to: 'fedcba9876543210',
    files: ['/envs/a.ts'],
    step: 2,
    ms: 5,
  }),
  event('environment_refused', {
    tag: 'A',
    version,
    problems: [{ file: '/envs/a.ts', line: 1, column: 2, message: 'x', kind: 'type' }],
  }),
  event('alarm', { metric: 'collapse/x', value: 1 }),
  event('environment_error', { tag: 'A', seed: 1, kind: 'threw', at: 'a.ts:5', episodes: 2 }),
);
const diagnosis: CollapseDiagnosis = {
  step: 1,
  families: [
    {
      ...{
        name: 'collapse_turn_sample',
        prompts: [{ text: 'P', tokens: 3 }],
        lengths: [4],
        column: [0],
        signatures: [7],
      },
      samples: [{ episode: 'train-000001-g000-m00', group: 0, turn: 1, text: 'hm' }],
      ...{ log_probs_per_token: [[-0.5]], metrics: { mi_estimate: 0.1 }, regime: 'diverse reasoning' },
    },
  ],
};
const gradients: GradientAnalysisRecord = {
  step: 1,
  analyses: [
    {
      ...{ name: 'grad_norm', parts: ['task', 'kl'], cosines: [[1, null]] },
      buckets: [
        {
          ...{ name: 'all', groups: [{ group_id: 0, reward_std: 0.5 }], samples: 2, tokens: 20 },
          ...{ gradients: [{ norm: 0.1, snr: null }], metrics: { loss: 1 } },
        },
      ],
    },
  ],
};
const raw = '<think>hm</think> <answer>Left || Up</answer>';
const episode: Episode = {
  ...{
    id: 'train-000001-g000-m00',
    step: 1,
    mode: 'train',
    group_id: 0,
    member: 0,
    env_id: 0,
    tag: 'A',
    seed: 7,
    environment: { name: 'bandit', version },
  },
  ...{
    terminated: true,
    truncated: false,
    success: true,
    reward: 1,
    penalty: -0.1,
    score: 0.9,
    advantage: 0.5,
    kept: true,
  },
  turns: [
    {
      turn: 1,
      state: 'S\u2028',
      actions_left: 3,
      raw,
      thought: 'hm',
      answer: 'Left || Up',
      parsed: ['Left', 'Up'],
      executed: ['Left'],
      reward: 1,
      penalty: -0.1,
      info: { a: 1 },
      finish: 'stop',
      span: [2, 4],
    },
  ],
  ...{
    final_state: 'end',
    metrics: { 'A/success': 1 },
    messages: [
      { role: 'system', content: 'Be.' },
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: raw },
    ],
  },
  tokens: {
    ids: [1, 2, 3, 4],
    mask: [0, 0, 1, 1],
    logprobs: [null, null, -1, -2],
    advantages: [0, 0, 1, 1],
    entropies: [null, null, 1, 1],
    values: [null, null, 0.5, 0.5],
  },
};
const whatIf = {
  ...episode,
  id: `${episode.id}-w1`,
  what_if: { of: episode.id, turn: 1, given: { answer: 'Up' }, players: ['hand'], seed: 1, notes: [] },
};
const indexed = indexLine('train', 1, 0);
addToIndex(indexed, episode, 1000);
addToIndex(indexed, { ...episode, member: 1, advantage: null, kept: null }, 2000);
const parsedMetrics = metrics
  .trim()
  .split('\n')
  .map(line => numbersOf(JSON.parse(line))!);
const segment = encodeSegment({
  from: 0,
  to: metrics.length,
  tail: Buffer.from(metrics.slice(-64)).toString('base64'),
  rows: 2,
  columns: columnsOf(parsedMetrics),
});
const checkpoint = {
  schema: 1,
  step: 1,
  files: { 'a.bin': { bytes: 1, sha256: '4bf5122f344554c53bde2ebb8cd2b7e3d1600ad631c385a5d7cce23c7785459a' } },
  offsets: { 'metrics.jsonl': 10 },
  streams: { a: [1, 2] },
  seed_counter: 5,
  state: { x: null },
};
const coverage = lines(
  {
    step: 1,
    map: 'abcd',
    files: {
      'bandit.ts': [
        [1, 5, 0],
        [2, 3, 3],
      ],
    },
  },
  { step: 2, map: 'abcd', files: {} },
);

let folder = '';
/** Writes a run folder with valid files; a target then replaces one of them. */
function runFolder(): void {
  folder = join(mkdtempSync(join(tmpdir(), 'run-')), '.ragen', 'runs', manifest.id);
  const files: Record<string, string | Uint8Array> = {
    [runFiles.manifest]: JSON.stringify(manifest),
    [runFiles.status]: JSON.stringify(status),
    [runFiles.metrics]: metrics,
    [runFiles.events]: events,
    'episodes/step-000001.jsonl': lines(episode),
    [environmentFile(version, 'version.json')]: JSON.stringify(kept),
    [environmentFile(version, 'environment.js')]: '',
    'checkpoints/step-000001/checkpoint.json': JSON.stringify(checkpoint),
    'checkpoints/step-000001/a.bin': '\u0001',
  };
  for (const [name, content] of Object.entries(files)) put(name, content);
}
function put(name: string, content: string | Uint8Array): void {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), content);
}

/** Asserts that every path built from these names lies in the run's folder. */
function staysInside(...names: string[]): void {
  for (const name of names)
    if (!resolve(folder, name).startsWith(resolve(folder) + sep))
      throw new Escaped(`${name} leads out of the run's folder`);
}

/** Reads the small files of a run with the editor's readers. */
async function readRun(): Promise<unknown> {
  const reader = new RunReader(folder, { now: () => 0, monotonic: () => 0 });
  const there = await reader.refresh();
  const versions = await reader.versions();
  const sources: unknown[] = [];
  for (const each of versions) {
    const about = await reader.keptEnvironment(each.version);
    if (!about) continue;
    staysInside(
      environmentFile(each.version, 'version.json'),
      ...about.sources.map(name => environmentFile(each.version, `sources/${name}`)),
    );
    sources.push(about);
  }
  const { events, metrics } = await reader.numbers();
  const effects = await Promise.all(versions.slice(1).map((after, i) => reader.effect(versions[i], after)));
  const config = reader.manifest ? configInEffect(reader.manifest.config, events) : null;
  return [there, reader.summary, versions, sources, events, metrics, effects, config, await reader.lease()];
}

/** Reads the small files of a run with the readers of the trainer and the CLI. */
function openRun(): unknown {
  const run = RunFolder.open(folder);
  const versions = versionsOf(run);
  for (const each of versions) {
    const about = keptEnvironment(run, each.version)?.about;
    if (about)
      staysInside(
        environmentFile(each.version, 'version.json'),
        ...about.sources.map(name => environmentFile(each.version, `sources/${name}`)),
      );
  }
  return [run.manifest, run.readStatus(), run.readLabels(), versions, changedConfig(run), readLease(folder)];
}

/** A target that replaces one file of a run's folder. */
const file = (
  name: string,
  corpus: readonly (string | Uint8Array)[],
  weight: number,
  form: FuzzTarget['form'],
  read: () => unknown,
): FuzzTarget => ({
  name: `run folder: ${name}`,
  ...{ form, corpus, weight },
  begin: runFolder,
  run(input) {
    put(name, input);
    return read();
  },
});

const scanner: EpisodeScanner = {
  index: (one, from) => Promise.resolve(indexOfFile(one, from)),
  search: () => Promise.resolve(true),
  end: () => undefined,
};
const vocabulary = tokenBytes(
  { decoder: { type: 'ByteLevel' }, model: { vocab: { a: 1, b: 2, Left: 3, '</answer>': 4 } } },
  'x',
);

export const runFolderTargets: readonly FuzzTarget[] = [
  file('manifest.json', [JSON.stringify(manifest)], 3, 'json', readRun),
  file('status.json', [JSON.stringify(status)], 2, 'json', readRun),
  file('events.jsonl', [events], 3, 'lines', readRun),
  file('labels.json', ['{"schema":1,"name":"b","tags":["x"],"archived":true}'], 2, 'json', () => readLabels(folder)),
  file('lease', [JSON.stringify(lease)], 2, 'json', async () => [
    await new RunReader(folder).lease(),
    readLease(folder),
  ]),
  file(environmentFile(version, 'version.json'), [JSON.stringify(kept)], 3, 'json', readRun),
  { ...file('manifest.json', [JSON.stringify(manifest)], 3, 'json', openRun), name: 'trainer: manifest.json' },
  { ...file('events.jsonl', [events], 3, 'lines', openRun), name: 'trainer: events.jsonl' },
  {
    ...file(environmentFile(version, 'version.json'), [JSON.stringify(kept)], 2, 'json', openRun),
    name: 'trainer: version.json',
  },
  file('checkpoints/step-000001/checkpoint.json', [JSON.stringify(checkpoint)], 4, 'json', async () => {
    const { checkpoint: found, broken } = await newestValid(folder);
    if (found)
      for (const name of Object.keys(found.manifest.files)) staysInside(join('checkpoints', 'step-000001', name));
    return [found, broken];
  }),
  file('metrics.jsonl', [metrics], 4, 'lines', async () => {
    const columns = new MetricColumns(folder, null);
    const table = await columns.update();
    const { rows } = await columns.newest();
    return [
      table.keys.map(key => table.column(key)),
      [...table.lineRange(0, table.rows)],
      rows,
      (await new RunReader(folder).numbers()).metrics,
    ];
  }),
  file('metrics.columns', [segment, Buffer.concat([segment, segment])], 4, 'bytes', async () => {
    const table = await new MetricColumns(folder, null).update();
    return [table.keys.map(key => table.column(key)), [...table.lineRange(0, table.rows)]];
  }),
  {
    name: 'segments of metrics',
    form: 'bytes',
    corpus: [segment, Buffer.concat([segment, segment])],
    weight: 12,
    run(input) {
      const bytes = new Uint8Array(input); // a separate buffer, as in the product's reader
      return decodeSegments(bytes.buffer).map(({ segment: one }) => {
        for (const column of one.columns.values()) holds(column.length === one.rows, 'a column has another length');
        return [...one.columns.keys()];
      });
    },
  },
  file('episodes/index.jsonl', [lines(indexed)], 4, 'lines', async () => {
    const index = new EpisodeIndexReader(folder, null, scanner);
    await index.update();
    const { table } = index;
    holds(table.rows <= 10_000, 'the table has more rows than its file can tell of');
    const rows = Array.from({ length: Math.min(5, table.rows) }, (_, i) => table.row(i));
    const first = rows.length > 0 ? await index.episode(rows[0]) : null;
    return [rows, first, table.slice(0), await index.search(Int32Array.from([0]), [], () => undefined)];
  }),
  {
    name: 'line of the index of episodes',
    form: 'json',
    corpus: [JSON.stringify(indexed)],
    weight: 12,
    run(input) {
      const line = jsonOrNothing(input.toString('utf8'));
      if (!isIndexLine(line)) return null;
      const table = new EpisodeTable();
      table.addLine(line);
      const numbers = indexColumns.every(name => line.columns[name].every(x => x === null || typeof x === 'number'));
      holds(numbers, 'a column holds what is no number');
      holds(line.from >= 0 && line.to >= line.from, 'a line tells of bytes before the file');
      return [table.rows > 0 ? table.row(0) : null, table.find('train-000001-g000-m00')];
    },
  },
  file('episodes/step-000001.jsonl', [lines(episode), lines(episode, whatIf)], 4, 'lines', async () => {
    const reader = new RunReader(folder);
    const steps = await reader.episodeSteps();
    const rows = await reader.episodeRows(steps[0]);
    const one = rows.length > 0 ? await reader.episode(steps[0], rows[0].id) : null;
    return [
      steps,
      rows,
      one,
      indexOfFile({ path: join(folder, 'episodes/step-000001.jsonl'), mode: 'train', step: 1 }, 0),
    ];
  }),
  {
    name: 'trace of an episode',
    form: 'json',
    corpus: [JSON.stringify(episode), JSON.stringify(whatIf)],
    weight: 8,
    run(input) {
      const { data } = episodeSchema.safeParse(jsonOrNothing(input.toString('utf8')));
      if (!data) return null;
      const trace = traceOf(data, 'run', vocabulary);
      const places = [
        ...trace.tokens,
        trace.header,
        trace.end,
        trace.finalState,
        ...trace.turns.flatMap(turn => [turn.extent, turn.answer, turn.rewardLine]),
      ];
      holds(
        places.every(({ from, to }) => from >= 0 && from <= to && to <= trace.text.length),
        'a part lies outside of the text',
      );
      return [trace, replayCase(data, manifest)];
    },
  },
  file(
    'scores.jsonl',
    [
      lines({
        step: 1,
        tags: {
          A: [
            [0.5, 3],
            [1, 2],
          ],
        },
      }),
    ],
    2,
    'lines',
    () => new JsonLines(join(folder, 'scores.jsonl'), scoresLineSchema).read(),
  ),
  file(
    'diagnostics/groups-000001.jsonl',
    [lines({ step: 1, group_id: 0, tag: 'A', seed: 1, scores: [1, 0], reward_std: 0.5, selected: true })],
    2,
    'lines',
    () => new RunDiagnostics(folder).groupRows(1),
  ),
  file(collapseFile(1), [JSON.stringify(diagnosis)], 3, 'json', async () => {
    const read = new RunDiagnostics(folder);
    return [await read.steps(), await read.family(1, 'collapse_turn_sample'), await read.family(1, '__proto__')];
  }),
  file(gradientsFile(1), [JSON.stringify(gradients)], 3, 'json', () => new RunDiagnostics(folder).gradients(1)),
  file(environmentFile(version, 'coverage.jsonl'), [coverage], 2, 'lines', async () => {
    const { lines: counted } = await new JsonLines(
      join(folder, environmentFile(version, 'coverage.jsonl')),
      coverageLineSchema,
    ).read();
    return [fileCoverage(counted, 'bandit.ts', 'a\nreward\n'), fileCoverage(counted, '__proto__', '')];
  }),
];
