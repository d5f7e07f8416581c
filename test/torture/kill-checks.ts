// Checks a run folder after a kill and at the end. No committed data is lost or changed, no line is incomplete, and
// every checkpoint is complete. Metrics, episodes and weights equal those of an uninterrupted run bit for bit. Data
// counts as committed up to the newest checkpoint: a resume may truncate later data, which it produces again.
// Timestamps and environment versions are excluded from the comparison.
import { AssertionError, deepStrictEqual, ok } from 'node:assert';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { runFiles } from '../../extension/run-data/run-file-names';
import { newestValid } from '../../extension/trainer/store/newest-checkpoint';
import { RunFolder } from '../../extension/trainer/store/run-folder';
import { scalarSteps } from '../support/events-in';
import { statusOf, timed } from '../support/terminal';
import { keptEnvironment } from '../../extension/trainer/store/environment-store';

/** The reproducible part of an uninterrupted run that stored all its checkpoints. */
export interface Course {
  steps: number;
  /** Lines of metrics.jsonl and scores.jsonl, by step. */
  metrics: string[];
  scores: Map<number, string>;
  /** Digest of each episode file, by name. */
  episodes: Record<string, string>;
  /** sha256 of each file of a checkpoint, by step. */
  weights: Map<number, Record<string, string>>;
  index: string[];
  /** File names in the folder, except timelines and those that depend on the number of sessions. */
  names: string[];
  /** Timeline files of steps. */
  timelines: string[];
}

/** The committed data of a run at the last inspection. */
export interface Committed {
  step: number;
  /** Content of the logs up to the checkpoint, including timestamps. */
  logs: Record<string, string>;
}

export const nothingCommitted: Committed = { step: 0, logs: {} };

/** Reads an uninterrupted run. */
export async function courseOf(run: string): Promise<Course> {
  const lines = metricsOf(run);
  const weights = new Map<number, Record<string, string>>();
  for (const name of readdirSync(join(run, runFiles.checkpoints))) {
    const text = readFileSync(join(run, runFiles.checkpoints, name, 'checkpoint.json'), 'utf8');
    const { step, files } = JSON.parse(text) as { step: number; files: Record<string, { sha256: string }> };
    weights.set(step, sums(files));
  }
  return {
    steps: lines.length - 1,
    metrics: lines,
    scores: scoresOf(run),
    episodes: digests(run),
    weights,
    index: indexOf(run),
    names: namesOf(run),
    timelines: timelinesOf(run),
  };
}

/**
 * Inspects a run whose trainer was just killed; writes nothing.
 * @throws if a part of `known` is lost, or committed data differs from the uninterrupted run
 */
export async function inspectKilled(run: string, course: Course, known: Committed): Promise<Committed> {
  for (const file of lineFiles(run)) completeLines(run, file);
  const { checkpoint, broken } = await newestValid(run);
  same(broken, [], 'incomplete checkpoints');
  const step = checkpoint?.manifest.step ?? 0;
  ok(step >= known.step, `the newest valid checkpoint is of step ${step}, but step ${known.step} was committed`);
  const logged = completeLines(run, runFiles.events).flatMap(line => {
    const { kind, data } = line as { kind: string; data?: { folder?: string } };
    return kind === 'checkpoint' ? Number(/step-(\d+)$/.exec(data?.folder ?? '')![1]) : [];
  });
  ok(
    Math.max(0, ...logged) <= step,
    `step ${Math.max(...logged)} was reported as saved, but the newest valid checkpoint is of step ${step}`,
  );
  if (checkpoint === null) return known;

  const { files, offsets } = checkpoint.manifest;
  same(sums(files), course.weights.get(step), `weights and moments of step ${step}`);
  const logs: Record<string, string> = {};
  for (const [name, offset] of Object.entries(offsets)) {
    const bytes = readFileSync(join(run, name));
    ok(
      bytes.length >= offset,
      `${name} has ${bytes.length} bytes, but the checkpoint of step ${step} requires ${offset}`,
    );
    logs[name] = bytes.toString('latin1', 0, offset);
    ok(
      name.startsWith(runFiles.tensorboard) || logs[name].endsWith('\n'),
      `${name} has no line that ends at ${offset}`,
    );
    const before = known.logs[name] ?? '';
    ok(logs[name].startsWith(before), `the content of ${name} at step ${known.step} has changed`);
  }
  for (const name of Object.keys(known.logs)) ok(name in logs, `${name} is lost`);
  const until = logs[runFiles.metrics].split('\n').length - 1;
  same(metricsOf(run).slice(0, until), course.metrics.slice(0, step + 1), `metrics up to step ${step}`);
  const scores = scoresOf(run);
  for (const [at, line] of course.scores) if (at <= step) same(scores.get(at), line, `scores of step ${at}`);
  const episodes = digests(run);
  for (const [name, digest] of Object.entries(course.episodes))
    if (stepOf(name) <= step) same(episodes[name], digest, `episodes/${name}`);
  return { step, logs };
}

/** Inspects a finished run. @throws if it differs from the uninterrupted run, or if temporary files are left */
export async function inspectFinished(run: string, course: Course, known: Committed): Promise<void> {
  const { step } = await inspectKilled(run, course, known);
  same(step, course.steps, 'the step of the last checkpoint');
  for (const file of lineFiles(run))
    ok(/(^|\n)$/.test(readFileSync(join(run, file), 'utf8')), `${file} ends with an incomplete line`);
  same(metricsOf(run), course.metrics, 'metrics');
  same(scoresOf(run), course.scores, 'scores');
  same(digests(run), course.episodes, 'episodes');
  same(indexOf(run), course.index, 'the index of the episodes');
  same(
    scalarSteps(run),
    course.metrics.map((_, at) => at),
    "steps of TensorBoard's files",
  );
  same(namesOf(run), course.names, 'names in the run folder');
  same(timelinesOf(run), course.timelines, 'timelines');
  const lines = completeLines(run, runFiles.timelineSteps).map(line => (line as { step: number }).step);
  same(lines, [...Array(course.steps + 1).keys()], 'steps of the sums of the timeline');
  const status = statusOf(run);
  same([status?.state, status?.step], ['finished', course.steps], 'status');
  const folder = RunFolder.open(run);
  for (const version of versionsOf(run))
    ok(keptEnvironment(folder, version), `the code of version ${version} is not stored`);
}

/** deepStrictEqual whose error message contains the name of the value. */
function same(actual: unknown, expected: unknown, what: string): void {
  try {
    deepStrictEqual(actual, expected);
  } catch (error) {
    throw new AssertionError({ message: `${what}: ${(error as Error).message}`, actual, expected });
  }
}

const version = /(?<="version":")[0-9a-f]{16}(?=")/g;

/** Environment versions used by the run's episodes. */
const versionsOf = (run: string): Set<string> =>
  new Set(
    episodeNames(run).flatMap(name => readFileSync(join(run, runFiles.episodes, name), 'utf8').match(version) ?? []),
  );

const sums = (files: Record<string, { sha256: string }>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(files)
      .map(([name, { sha256 }]) => [name, sha256])
      .sort(),
  );

/** Names of the files of JSON lines in the run folder. */
function lineFiles(run: string): string[] {
  const episodes = existsSync(join(run, runFiles.episodes)) ? readdirSync(join(run, runFiles.episodes)) : [];
  const own = [runFiles.metrics, runFiles.events, runFiles.scores].filter(name => existsSync(join(run, name)));
  return [...own, ...episodes.filter(name => name.endsWith('.jsonl')).map(name => `${runFiles.episodes}/${name}`)];
}

/** The complete lines of a file. @throws if a line other than the last is incomplete */
function completeLines(run: string, name: string): unknown[] {
  const lines = existsSync(join(run, name)) ? readFileSync(join(run, name), 'utf8').split('\n').slice(0, -1) : [];
  return lines.map((line, i): unknown => {
    try {
      return JSON.parse(line);
    } catch {
      throw new Error(`line ${i + 1} of ${name} is incomplete: ${line.slice(0, 200)}`);
    }
  });
}

const metricsOf = (run: string): string[] =>
  completeLines(run, runFiles.metrics).map(line =>
    JSON.stringify(Object.fromEntries(Object.entries(line as object).filter(([key]) => !timed.test(key)))),
  );

const scoresOf = (run: string): Map<number, string> =>
  new Map(completeLines(run, runFiles.scores).map(line => [(line as { step: number }).step, JSON.stringify(line)]));

const indexOf = (run: string): string[] =>
  completeLines(run, runFiles.episodeIndex)
    .map(line => JSON.stringify(line))
    .sort();

const stepOf = (name: string): number => Number(/-(\d+)\.jsonl$/.exec(name)![1]);

const episodeNames = (run: string): string[] =>
  readdirSync(join(run, runFiles.episodes))
    .filter(name => /^(step|val)-\d+\.jsonl$/.test(name))
    .sort();

function digests(run: string): Record<string, string> {
  const digest = (name: string) => {
    const text = readFileSync(join(run, runFiles.episodes, name), 'utf8');
    return createHash('sha256').update(text.replaceAll(version, '')).digest('hex');
  };
  return Object.fromEntries(episodeNames(run).map(name => [name, digest(name)]));
}

/** Names of the timeline files of steps. */
const timelinesOf = (run: string): string[] =>
  readdirSync(join(run, runFiles.timeline))
    .map(name => `${runFiles.timeline}/${name}`)
    .filter(name => isTimeline.test(name))
    .sort();

const isTimeline = /^timeline\/step-\d+\.jsonl$/;

/**
 * All file names except the names of checkpoints, stored code and event files, whose number depends on the number of
 * sessions, and of timelines of steps.
 */
function namesOf(run: string): string[] {
  const names = readdirSync(run, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => relative(run, join(entry.parentPath, entry.name)).replaceAll(sep, '/'));
  const own = [runFiles.checkpoints, runFiles.environments, runFiles.tensorboard].map(name => `${name}/`);
  return names
    .filter(name => !isTimeline.test(name))
    .filter(name => !own.some(folder => name.startsWith(folder)) || /(^|\/)\.|\.new$/.test(name))
    .sort();
}
