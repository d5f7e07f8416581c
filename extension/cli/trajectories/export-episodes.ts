// `ragen export --run RUN --format messages, sft, dpo, atif or parquet`: writes the episodes of a run as a data set. A file
// is written under another name and renamed when it is complete, so an interrupted export leaves no half file.
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { UserError } from '../../common/user-error';
import { counted } from '../../common/numbers';
import type { Episode } from '../../run-data/episode';
import { atifTrajectory } from '../../run-data/trajectories/atif';
import { messagesLine, pairedEpisodes, sftLine } from '../../run-data/trajectories/chat-lines';
import { RunFolder } from '../../trainer/store/run-folder';
import type { Answer } from '../output/answer';
import { matchingEpisodes } from './matching-episodes';
import { writeParquet } from './parquet-writer';

/** Formats of `ragen export` that contain episodes. */
export const episodeFormats = ['messages', 'sft', 'dpo', 'atif', 'parquet'] as const;
export type EpisodeFormat = (typeof episodeFormats)[number];

export interface EpisodeExport {
  workspace: string;
  run: string;
  format: EpisodeFormat;
  /** A file; for `atif`, a folder. */
  out: string;
  /** Filter line; all episodes match an empty line. */
  filter: string;
  /** Whether an existing file is replaced. */
  force: boolean;
}

/** Writes the episodes. @throws UserError if none match or the target cannot be written */
export async function exportEpisodes({ workspace, run, format, out, filter, force }: EpisodeExport): Promise<Answer> {
  const folder = RunFolder.find(workspace, run);
  const target = resolve(workspace, out);
  if (format === 'atif') return writeTrajectories(folder, target, filter);
  if (existsSync(target) && !force)
    throw new UserError(`export: ${target} already exists: give another --out, or --force to replace it`);
  const part = `${target}.part`;
  try {
    mkdirSync(dirname(target), { recursive: true });
    const { rows, note } = await write[format](part, folder, filter);
    if (rows === 0) throw noneMatch(folder, filter, note);
    renameSync(part, target);
    const plainText = [`${counted(rows, format === 'dpo' ? 'pair' : 'episode')} → ${target}`, note].filter(Boolean);
    return { document: { file: target, rows, note }, plainText: plainText.join('\n') };
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`export: ${target} cannot be written (${(error as Error).message}): give another --out`);
  } finally {
    rmSync(part, { force: true });
  }
}

interface Written {
  rows: number;
  /** What was left out; empty if nothing was. */
  note: string;
}
type Write = (file: string, folder: RunFolder, filter: string) => Written | Promise<Written>;

const write: Record<Exclude<EpisodeFormat, 'atif'>, Write> = {
  messages: (file, folder, filter) =>
    writeLines(
      file,
      mapped(episodesOf(folder, filter), episode => messagesLine(folder.manifest, episode)),
    ),
  sft: (file, folder, filter) => writeLines(file, mapped(episodesOf(folder, filter), sftLine)),
  dpo: (file, folder, filter) => {
    const { pairs, skipped } = pairedEpisodes(episodesOf(folder, filter));
    const reasons = [
      [skipped.equalScores, 'have equal scores'],
      [skipped.single, 'have one matching episode'],
      [skipped.otherPrompts, 'do not begin with the same prompt'],
    ] as const;
    const named = reasons.flatMap(([count, reason]) => (count > 0 ? [`${count} ${reason}`] : []));
    const note = named.length === 0 ? '' : `Prompt groups without a pair: ${named.join(', ')}`;
    return {
      ...writeLines(
        file,
        mapped(pairs, ({ pair }) => pair),
      ),
      note,
    };
  },
  parquet: async (file, folder, filter) => ({
    rows: await writeParquet(file, folder.manifest, episodesOf(folder, filter)),
    note: '',
  }),
};

function* episodesOf(folder: RunFolder, filter: string): Generator<Episode> {
  for (const { episode } of matchingEpisodes(folder, filter)) yield episode;
}

function* mapped<A, B>(values: Iterable<A>, map: (value: A) => B): Generator<B> {
  for (const value of values) yield map(value);
}

function writeLines(file: string, lines: Iterable<unknown>): Written {
  const fd = openSync(file, 'w');
  let rows = 0;
  try {
    for (const line of lines) {
      writeSync(fd, `${JSON.stringify(line)}\n`);
      rows++;
    }
  } finally {
    closeSync(fd);
  }
  return { rows, note: '' };
}

/** Writes one file per episode into a new or empty folder. */
function writeTrajectories(folder: RunFolder, target: string, filter: string): Answer {
  if (existsSync(target) && readdirSync(target).length > 0)
    throw new UserError(`export: ${target} is not empty: give another --out`);
  const found = matchingEpisodes(folder, filter);
  let rows = 0;
  try {
    for (const { episode } of found) {
      if (rows === 0) mkdirSync(target, { recursive: true });
      const text = `${JSON.stringify(atifTrajectory(folder.manifest, episode), null, 1)}\n`;
      writeFileSync(join(target, `${fileName(episode.id)}.json`), text, { flag: 'wx' });
      rows++;
    }
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`export: ${target} cannot be written (${(error as Error).message}): give another --out`);
  }
  if (rows === 0) throw noneMatch(folder, filter, '');
  return { document: { folder: target, rows }, plainText: `${counted(rows, 'trajectory file')} → ${target}` };
}

/** Returns an episode's id without characters that could leave the folder; ids of the trainer have none. */
const fileName = (id: string): string => id.replace(/[^\w-]/g, '_');

const noneMatch = ({ id }: RunFolder, filter: string, note: string): UserError =>
  new UserError(
    `export: ${filter === '' ? `run ${id} has no episodes` : `no episodes of run ${id} match ${JSON.stringify(filter)}`} for this format${note === '' ? '' : ` (${note})`}: change --episodes`,
  );
