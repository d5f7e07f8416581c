// `ragen export --run RUN --format messages, sft, dpo, atif or parquet`: writes the episodes of a run as a data set; an
// episode with roles is written by role. A file is written under another name and renamed when it is complete, so an
// interrupted export leaves no half file.
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
import { atifTrajectory } from '../../run-data/trajectories/atif';
import { messagesLine, pairedEpisodes, sftLine } from '../../run-data/trajectories/chat-lines';
import { roleEpisodes, type RoleEpisode } from '../../run-data/trajectories/role-episodes';
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
    const seen = { roles: false };
    const { rows, note } = await write[format](part, folder, episodesOf(folder, filter, seen));
    if (rows === 0) throw noneMatch(folder, filter, note);
    renameSync(part, target);
    const plainText = [`${counted(rows, unitOf(format, seen.roles))} → ${target}`, note].filter(Boolean);
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
type Write = (file: string, folder: RunFolder, episodes: Iterable<RoleEpisode>) => Written | Promise<Written>;

/** Returns what a row of a file is. */
const unitOf = (format: EpisodeFormat, hasRoles: boolean): string =>
  format === 'dpo' ? 'pair' : hasRoles ? 'role context' : 'episode';

const write: Record<Exclude<EpisodeFormat, 'atif'>, Write> = {
  messages: (file, folder, episodes) =>
    writeLines(
      file,
      mapped(episodes, episode => messagesLine(folder.manifest, episode)),
    ),
  sft: (file, _, episodes) => writeLines(file, mapped(episodes, sftLine)),
  dpo: (file, _, episodes) => {
    const { pairs, skipped } = pairedEpisodes(episodes);
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
  parquet: async (file, folder, episodes) => ({
    rows: await writeParquet(file, folder.manifest, episodes),
    note: '',
  }),
};

/** Returns the matching episodes; an episode with roles is returned by role, and noted in `seen`. */
function* episodesOf(folder: RunFolder, filter: string, seen = { roles: false }): Generator<RoleEpisode> {
  for (const { episode } of matchingEpisodes(folder, filter)) {
    if (episode.roles) seen.roles = true;
    yield* roleEpisodes(episode);
  }
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

/** Writes one file per episode, or per role of an episode, into a new or empty folder. */
function writeTrajectories(folder: RunFolder, target: string, filter: string): Answer {
  if (existsSync(target) && readdirSync(target).length > 0)
    throw new UserError(`export: ${target} is not empty: give another --out`);
  let rows = 0;
  try {
    for (const episode of episodesOf(folder, filter)) {
      if (rows === 0) mkdirSync(target, { recursive: true });
      const text = `${JSON.stringify(atifTrajectory(folder.manifest, episode), null, 1)}\n`;
      writeFileSync(join(target, `${fileName(episode)}.json`), text, { flag: 'wx' });
      rows++;
    }
  } catch (error) {
    if (error instanceof UserError) throw error;
    throw new UserError(`export: ${target} cannot be written (${(error as Error).message}): give another --out`);
  }
  if (rows === 0) throw noneMatch(folder, filter, '');
  return { document: { folder: target, rows }, plainText: `${counted(rows, 'trajectory file')} → ${target}` };
}

/**
 * Returns an episode's id, and its role if it has one, without characters that could leave the folder; ids of the
 * trainer have none.
 */
const fileName = ({ id, role }: RoleEpisode): string =>
  `${id}${role === undefined ? '' : `-${role}`}`.replace(/[^\w-]/g, '_');

const noneMatch = ({ id }: RunFolder, filter: string, note: string): UserError =>
  new UserError(
    `export: ${filter === '' ? `run ${id} has no episodes` : `no episodes of run ${id} match ${JSON.stringify(filter)}`} for this format${note === '' ? '' : ` (${note})`}: change --episodes`,
  );
