// Untrusted run folders. Each file is replaced by an object that a reader must not open or read completely: pipes,
// devices, links that lead outside, link loops, sparse files, endless lines, folders, garbage. The readers of the
// editor and the CLI must end within time and memory limits, and must read nothing outside the folder. Each case runs
// alone, so that a blocked read is a case that never ends.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { indexOfFile } from '../../extension/vscode/run-files/episodes/episode-scan';
import { EpisodeIndexReader } from '../../extension/vscode/run-files/episodes/episode-index-reader';
import { MetricColumns } from '../../extension/vscode/run-files/metrics/metric-columns';
import { RunDiagnostics } from '../../extension/vscode/run-files/run-diagnostics';
import { readLabels } from '../../extension/vscode/run-files/run-labels';
import { RunReader } from '../../extension/vscode/run-files/run-reader';
import { ScoreStrips } from '../../extension/vscode/run-files/episodes/score-strips';
import { EpisodeHeads } from '../../extension/vscode/run-files/episodes/episode-heads';
import { runNames } from '../../extension/node/read-run-file';
import { environmentFile, runFiles } from '../../extension/run-data/run-file-names';
import { UserError } from '../../extension/common/user-error';
import { newestValid } from '../../extension/trainer/store/newest-checkpoint';
import { readLease } from '../../extension/trainer/store/held-lease';
import { RunFolder } from '../../extension/trainer/store/run-folder';
import { metricLines } from '../../extension/cli/run-lifecycle/follow';
import { streamOf } from './fuzz-mutations';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';
import { keptEnvironment } from '../../extension/trainer/store/environment-store';

const version = '0123456789abcdef';
/** Content that no reader may return. */
const secret = 'outside-of-the-run-folder';

/** Files to replace; the last two are folders. */
const locations = [
  ...[runFiles.manifest, runFiles.status, runFiles.lease, runFiles.labels, runFiles.notes, runFiles.metrics],
  ...[runFiles.columns, runFiles.events, runFiles.scores, runFiles.episodeIndex, 'episodes/step-000001.jsonl'],
  ...['diagnostics/groups-000001.jsonl', 'checkpoints/step-000001/checkpoint.json'],
  ...[environmentFile(version, 'version.json'), runFiles.episodes, runFiles.checkpoints],
] as const;

type Random = ReturnType<typeof streamOf>;

/** Replacements of a file. `outside` is a folder that holds files of the same names, which no reader may return. */
export const tricks: Readonly<Record<string, (path: string, outside: string, random: Random) => void>> = {
  pipe: path => void execFileSync('mkfifo', [path]),
  'link to a device': path => symlinkSync('/dev/zero', path),
  'link out': (path, outside) => symlinkSync(outside, path),
  'link loop': path => symlinkSync(path, path),
  'link to the root': path => symlinkSync('/', path),
  'link to a pipe': path => {
    execFileSync('mkfifo', [`${path}.pipe`]);
    symlinkSync(`${path}.pipe`, path);
  },
  sparse: path => {
    writeFileSync(path, '');
    truncateSync(path, 2 ** 40);
  },
  'line without end': path => {
    writeFileSync(path, '{"step":1,"x":"');
    truncateSync(path, 2 ** 27);
  },
  folder: path => void mkdirSync(path),
  'deep nesting': path => void mkdirSync(join(path, ...Array.from({ length: 200 }, () => 'd')), { recursive: true }),
  brackets: path => writeFileSync(path, '['.repeat(200_000)),
  garbage: (path, _, random) =>
    writeFileSync(path, Buffer.from(Array.from({ length: 5000 }, () => Math.floor(random.uniform() * 256)))),
};

/** Maximum seconds for all readers of one folder on a busy machine. */
const mostSeconds = 60;
/**
 * Maximum growth of the process's memory in bytes over all cases. A reader that loads a complete sparse file exceeds
 * it.
 */
const mostGrowth = 1.5 * 2 ** 30;

export interface HostileOutcome {
  cases: number;
  seconds: number;
  growth: number;
}

/** Tries tricks at locations, in a seeded order. @throws if a reader does not end, or returns content from outside */
export async function hostileFolders(cases: number, seed: number): Promise<HostileOutcome> {
  if (process.platform === 'win32') return { cases: 0, seconds: 0, growth: 0 }; // no named pipes
  const all = locations.flatMap(location => Object.keys(tricks).map(trick => ({ location, trick })));
  const random = streamOf(seed, 'hostile folders', 0);
  for (let i = all.length - 1; i > 0; i--) {
    const j = Math.floor(random.uniform() * (i + 1));
    [all[i], all[j]] = [all[j], all[i]];
  }
  const from = performance.now();
  const held = process.memoryUsage().rss;
  let most = held;
  const sampler = setInterval(() => (most = Math.max(most, process.memoryUsage().rss)), 50);
  try {
    for (let i = 0; i < cases; i++) {
      await tryOne(all[i % all.length], random);
      most = Math.max(most, process.memoryUsage().rss);
    }
  } finally {
    clearInterval(sampler);
  }
  const growth = most - held;
  if (growth > mostGrowth) throw new Error(`hostile folders, seed ${seed}: memory grew by ${growth} bytes`);
  return { cases, seconds: (performance.now() - from) / 1000, growth };
}

async function tryOne({ location, trick }: { location: string; trick: string }, random: Random): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'ragen-hostile-'));
  try {
    const runs = join(root, 'work', '.ragen', 'runs');
    const [bad, good] = ['20260101-000000-bad-0001', '20260101-000000-good-0002'].map(name => join(runs, name));
    for (const folder of [bad, good]) soundFolder(folder);
    const outside = join(root, 'outside');
    writeFileSync(outside, `{"schema":1,"name":"${secret}","tags":["${secret}"]}\n`);
    rmSync(join(bad, location), { recursive: true, force: true });
    mkdirSync(dirname(join(bad, location)), { recursive: true });
    tricks[trick](join(bad, location), outside, random);
    const name = `${trick} in place of ${location}`;
    const report = JSON.stringify(await inTime(name, readAll(bad, join(root, 'work'))));
    if (report.includes(secret))
      throw new Error(`hostile folders: ${name}: a reader returned a file outside the folder`);
    const { runs: found, damaged } = RunFolder.survey(join(root, 'work'));
    if (!found.some(({ path }) => path === good))
      throw new Error(`hostile folders: ${name}: the valid run is not listed`);
    if (found.length + damaged.length !== 2) throw new Error(`hostile folders: ${name}: the damaged run is not listed`);
    if (damaged.some(({ reason }) => !reason.includes(runFiles.manifest)))
      throw new Error(`hostile folders: ${name}: the damaged run's row does not name the file: ${damaged[0].reason}`);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/** Reads a folder with all readers of the editor and the CLI; an error counts as a result. */
async function readAll(folder: string, workspace: string): Promise<unknown[]> {
  const reader = new RunReader(folder);
  const run = (): RunFolder => RunFolder.open(folder);
  const scanner = {
    index: async (file: Parameters<typeof indexOfFile>[0], from: number) => indexOfFile(file, from),
    search: async () => true,
    end: () => undefined,
  };
  const reads: (() => unknown)[] = [
    async () => [await reader.refresh(), reader.summary, reader.problem],
    async () => (await reader.numbers()).metrics.slice(0, 5),
    () => reader.versions(),
    async () => [
      await reader.episodeSteps(),
      await reader.episodeRows({ step: 1, mode: 'train' }),
      await reader.checkpoints(),
    ],
    () => reader.lease(),
    () => readLabels(folder),
    () => reader.keptEnvironment(version),
    async () => (await new MetricColumns(folder, null).update()).keys,
    async () => (await new MetricColumns(folder, null).newest()).keys,
    () => new ScoreStrips(folder).strips(1, 2, 2),
    () => new EpisodeHeads().of(folder, { step: 1, mode: 'train' }),
    async () => {
      const index = new EpisodeIndexReader(folder, null, scanner);
      await index.update();
      return index.table.rows;
    },
    async () => [await new RunDiagnostics(folder).steps(), await new RunDiagnostics(folder).groupRows(1)],
    () => run().readStatus(),
    () => run().readLabels(),
    () => keptEnvironment(run(), version),
    () => Array.from(metricLines(run())).length,
    () => readLease(folder)?.live,
    () => newestValid(folder),
    () => RunFolder.survey(workspace).damaged,
    () => runNames(dirname(folder)),
  ];
  const answers: unknown[] = [];
  for (const read of reads) {
    try {
      answers.push(await read());
    } catch (error) {
      const isSystem = (error as NodeJS.ErrnoException).code !== undefined;
      if (!(error instanceof UserError) && !isSystem) throw error;
      answers.push((error as Error).message);
    }
  }
  return answers;
}

async function inTime<T>(name: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`hostile folders: ${name}: the readers did not end in ${mostSeconds} s`)),
      mostSeconds * 1000,
    );
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function soundFolder(folder: string): void {
  const manifest = {
    ...{ schema: 1, id: 'a', name: 'a', created: '2026-01-01T00:00:00.000Z', config_name: 'a', overrides: [] },
    ...{ config: {}, config_hash: 'x', seeds: {}, versions: {}, hardware: {}, environments: [] },
    model: { path: 'm', sha256: 'x', parameters: 1 },
  };
  const status = {
    ...{ state: 'finished', step: 1, total_steps: 1, success: null, reward: null, tokens_per_s: null, eta_s: null },
    ...{ phase: 'idle', updated: '2026-01-01T00:00:00.000Z' },
  };
  const files: Record<string, string> = {
    [runFiles.manifest]: JSON.stringify(manifest),
    [runFiles.status]: JSON.stringify(status),
    [runFiles.metrics]: '{"step":1,"time":"2026-01-01T00:00:00.000Z","wall_s":1,"x":0.5}\n',
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** The part `hostile-folders` of `npm run torture`: every trick at every location. */
export async function hostileFoldersPart(scale: TortureScale): Promise<void> {
  const { cases, seconds, growth } = await hostileFolders(
    scaled(locations.length * Object.keys(tricks).length, scale),
    scale.seed,
  );
  scale.say(
    `\n${table(['cases', 'seconds', 'MiB grown'], [[String(cases), Math.round(seconds), Math.round(growth / 2 ** 20)]])}`,
  );
}
