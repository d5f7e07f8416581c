// Attaches the files of another trainer to a workspace and returns what the run folder then contains.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AttachedRun } from '../../extension/foreign-runs/attached-run';
import { followRun } from '../../extension/foreign-runs/follow-run';
import { recognise } from '../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../extension/foreign-runs/source-folder';
import type { Mapping } from '../../extension/run-data/mapping-proposal';
import { episodeSchema, type Episode } from '../../extension/run-data/episode';
import { metricsLineSchema, type MetricsLine } from '../../extension/run-data/step-lines';
import type { RunFolder } from '../../extension/trainer/store/run-folder';

/** Folder with the samples of the trainers. */
export const samples = 'test/golden/foreign-runs';

export interface Attached {
  folder: RunFolder;
  adapter: string;
  missing: string[];
  metrics: MetricsLine[];
  /** Episodes by file name, such as `step-000001`. */
  episodes: Record<string, Episode[]>;
}

/** Reads everything that `path` contains, into a new run of the workspace or into `earlier`. */
export async function attachOnce(
  workspace: string,
  path: string,
  { earlier, mapping = {}, bytes = 1e9 }: { earlier?: RunFolder; mapping?: Mapping; bytes?: number } = {},
): Promise<Attached> {
  const source = await SourceFolder.open(path);
  const { adapter, run } = await recognise(source, undefined, mapping);
  const folder = earlier ?? (await AttachedRun.create(workspace, source, run, { adapter: adapter.id }));
  await followRun(folder, source, run, {
    ...{ episodeBytes: bytes, once: true, signal: new AbortController().signal },
    onChange: () => undefined,
  });
  return { folder, adapter: adapter.id, missing: run.missing, ...contentsOf(folder) };
}

/** Parses the metrics and episodes of a run folder; throws on a line that does not match its schema. */
export function contentsOf(folder: RunFolder): Pick<Attached, 'metrics' | 'episodes'> {
  const linesOf = (file: string): unknown[] =>
    (existsSync(file) ? readFileSync(file, 'utf8') : '')
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line) as unknown);
  const episodes: Record<string, Episode[]> = {};
  for (const name of readdirSync(folder.file('episodes')).sort())
    if (/^(?:step|val)-\d+\.jsonl$/.test(name))
      episodes[name.slice(0, -'.jsonl'.length)] = linesOf(join(folder.file('episodes'), name)).map(line =>
        episodeSchema.parse(line),
      );
  return { metrics: linesOf(folder.file('metrics.jsonl')).map(line => metricsLineSchema.parse(line)), episodes };
}
