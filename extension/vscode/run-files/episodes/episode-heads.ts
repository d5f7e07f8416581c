// Reads the identities and the results of a step's episodes. Only the beginning of each line is parsed, because the
// trainer writes an episode's results before its turns. The disk, not the parser, therefore limits the speed at which
// files of hundreds of megabytes are read. A complete episode is read separately on request. Invariant: cached data is
// used only as long as the file is unchanged (`fileStamp`). Must not import `vscode`.
import { createHash } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { z } from 'zod';
import { openRegular } from '../../../node/bounded-file';
import { jsonOrNothing } from '../../../common/json';
import { requireLogSize } from '../../../node/read-run-file';
import { episodeSchema, type Episode } from '../../../run-data/episode';
import { episodesFile, mostLineBytes } from '../../../run-data/run-file-names';
import { readRange } from '../../../node/json-lines';

export interface StepFile {
  step: number;
  mode: 'train' | 'val';
}

const headSchema = episodeSchema.pick({
  id: true,
  step: true,
  mode: true,
  group_id: true,
  member: true,
  tag: true,
  seed: true,
  environment: true,
  success: true,
  score: true,
  reward: true,
  kept: true,
});

export type EpisodeHead = z.infer<typeof headSchema> & {
  /** Hash of the first turn's state; empty for an episode without turns. */
  first: string;
  /** Byte offset of the episode's line in its file. */
  from: number;
  length: number;
};

/** Number of bytes read at a time. */
const pieceBytes = 1 << 22;
/** Number of leading bytes of a line that are parsed first; if they are insufficient, the complete line is parsed. */
const headBytes = 1 << 14;
/** Number of files whose heads are cached. */
const remembered = 64;

export class EpisodeHeads {
  private readonly files = new Map<string, { stamp: string; heads: Promise<EpisodeHead[]> }>();

  /** Returns the heads of a step's episodes in file order; empty if the file is missing. */
  async of(folder: string, { mode, step }: StepFile): Promise<EpisodeHead[]> {
    return this.ofFile(join(folder, episodesFile(mode, step)), folder);
  }

  /** Returns one complete episode; undefined if the file has no episode with this id. */
  async episode(file: string, id: string, within = runOf(file)): Promise<Episode | undefined> {
    const head = (await this.ofFile(file, within)).find(each => each.id === id);
    if (!head) return undefined;
    const handle = await openRegular(file, within);
    try {
      const bytes = await readRange(handle, head.from, head.length);
      return episodeSchema.safeParse(jsonOrNothing(bytes.toString('utf8'))).data;
    } finally {
      await handle.close();
    }
  }

  /** Returns the heads of a file's episodes. Links that lead out of the folder `within` are not followed. */
  async ofFile(file: string, within = runOf(file)): Promise<EpisodeHead[]> {
    const stamp = await fileStamp(file);
    if (stamp === '') return [];
    const known = this.files.get(file);
    const entry = known?.stamp === stamp ? known : { stamp, heads: readHeads(file, within) };
    this.files.delete(file);
    this.files.set(file, entry);
    for (const key of [...this.files.keys()].slice(0, -remembered)) this.files.delete(key);
    return entry.heads;
  }
}

/** Run folder of an episode file, two levels up. */
const runOf = (file: string): string => dirname(dirname(file));

/** Returns a text that changes when the file changes; empty if the file is missing. */
export async function fileStamp(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await lstat(file);
    return `${ino}:${size}:${mtimeMs}`;
  } catch {
    return '';
  }
}

/** Returns the heads of all complete lines of a file. Lines longer than `mostLineBytes` are skipped. */
export async function readHeads(file: string, within = runOf(file)): Promise<EpisodeHead[]> {
  const heads: EpisodeHead[] = [];
  const handle = await openRegular(file, within);
  try {
    requireLogSize(file, (await handle.stat()).size);
    let [from, at] = [0, 0];
    /** Bytes of the current line that were read so far. */
    let begun = Buffer.alloc(0);
    for (;;) {
      const piece = await readRange(handle, at, pieceBytes);
      if (piece.length === 0) return heads;
      let start = 0;
      for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, start)) {
        const length = at + end - from;
        const prefix = Buffer.concat([begun, piece.subarray(start, Math.min(end, start + headBytes))]);
        const readLine = async () => (await readRange(handle, from, length)).toString('utf8');
        const head =
          length > mostLineBytes ? undefined : (headOfPrefix(prefix.toString('utf8')) ?? headOfLine(await readLine()));
        if (head) heads.push({ ...head, from, length });
        begun = Buffer.alloc(0);
        start = end + 1;
        from = at + start;
      }
      if (begun.length < headBytes) begun = Buffer.concat([begun, piece.subarray(start, start + headBytes)]);
      at += piece.length;
    }
  } finally {
    await handle.close();
  }
}

type Head = Omit<EpisodeHead, 'from' | 'length'>;

/** Parses the beginning of a line; undefined if `prefix` ends before the end of the first state. */
function headOfPrefix(prefix: string): Head | undefined {
  const turns = prefix.indexOf(',"turns":[');
  if (turns < 0) return undefined;
  const facts = headSchema.safeParse(jsonOrNothing(`${prefix.slice(0, turns)}}`)).data;
  const state = /^,"turns":\[(?:\]|\{"turn":1,"state":("(?:[^"\\]|\\.)*"))/.exec(prefix.slice(turns));
  return facts && state
    ? { ...facts, first: hashOf(state[1] === undefined ? '' : (JSON.parse(state[1]) as string)) }
    : undefined;
}

/** Parses a complete line in any key order; undefined if the line is not an episode. */
function headOfLine(line: string): Head | undefined {
  const parsed = episodeSchema.safeParse(jsonOrNothing(line)).data;
  return parsed && { ...headSchema.parse(parsed), first: hashOf(parsed.turns[0]?.state ?? '') };
}

const hashOf = (state: string): string =>
  state === '' ? '' : createHash('sha256').update(state).digest('base64').slice(0, 16);

/** Returns the episodes in the same group as the episode `of`, ordered by their index within the group. */
export const groupOf = (heads: readonly EpisodeHead[], of: Pick<EpisodeHead, 'group_id'>): EpisodeHead[] =>
  heads.filter(head => head.group_id === of.group_id).sort((a, b) => a.member - b.member);

/** Sorts by descending score; stable for equal scores. */
export const byScore = (heads: readonly EpisodeHead[]): EpisodeHead[] => [...heads].sort((a, b) => b.score - a.score);

/** Whether two episodes have the same prompt: the same tag, and the same seed or first state. */
export const samePrompt = (a: EpisodeHead, b: EpisodeHead): boolean =>
  a.tag === b.tag && ((a.mode === b.mode && a.seed === b.seed) || (a.first !== '' && a.first === b.first));

/**
 * Returns the files of earlier (`-1`) or later (`1`) steps, nearest first. Only files of the same mode are returned, so
 * that a training episode is never paired with a validation episode.
 */
export function stepsTowards(files: readonly StepFile[], { step, mode }: StepFile, direction: -1 | 1): StepFile[] {
  const same = files.filter(file => file.mode === mode && (direction < 0 ? file.step < step : file.step > step));
  return same.sort((a, b) => direction * (a.step - b.step));
}
