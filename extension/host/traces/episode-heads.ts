// What is told of a step's episodes before any is opened: who they are and how they went. A file is read once, in pieces, and of each line
// only its beginning is parsed, since the trainer writes an episode's facts before its turns: files of hundreds of megabytes are gone
// through as fast as the disk gives them. An episode is then read by itself. Invariant: what is remembered of a file holds as long as its
// stamp does. No `vscode` here.
import { createHash } from 'node:crypto';
import { lstat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { z } from 'zod';
import { openRegular } from '../../protocol/bounded-file';
import { jsonOrNothing } from '../../protocol/json';
import { requireLogSize } from '../../protocol/run-file';
import { episodeSchema, episodesFile, mostLineBytes, type Episode } from '../../protocol/run-folder';
import { readRange } from '../json-lines';

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
  /** Hash of what the first turn showed; empty for an episode without turns. */
  first: string;
  /** Place in the file, bytes. */
  from: number;
  length: number;
};

/** Bytes read at a time. */
const pieceBytes = 1 << 22;
/** Bytes of a line's beginning that are looked at before the whole line is. */
const headBytes = 1 << 14;
/** Files whose heads are remembered. */
const remembered = 64;

export class EpisodeHeads {
  private readonly files = new Map<string, { stamp: string; heads: Promise<EpisodeHead[]> }>();

  /** The heads of a step's episodes in the file's order; none where there is no such file. */
  async of(folder: string, { mode, step }: StepFile): Promise<EpisodeHead[]> {
    return this.ofFile(join(folder, episodesFile(mode, step)), folder);
  }

  /** One whole episode; undefined where the file has none of that id. */
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

  /** The heads of a file's episodes. `within` is the folder that no link may lead out of. */
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

/** The run folder of a file of episodes, which lies in one of its folders. */
const runOf = (file: string): string => dirname(dirname(file));

/** A text that changes when the file does; empty where there is none. */
export async function fileStamp(file: string): Promise<string> {
  try {
    const { ino, size, mtimeMs } = await lstat(file);
    return `${ino}:${size}:${mtimeMs}`;
  } catch {
    return '';
  }
}

/** The heads of all whole lines of a file; lines longer than any trainer writes are passed over. */
export async function readHeads(file: string, within = runOf(file)): Promise<EpisodeHead[]> {
  const heads: EpisodeHead[] = [];
  const handle = await openRegular(file, within);
  try {
    requireLogSize(file, (await handle.stat()).size);
    let [from, at] = [0, 0];
    /** The line's beginning, as far as it was read. */
    let begun = Buffer.alloc(0);
    for (;;) {
      const piece = await readRange(handle, at, pieceBytes);
      if (piece.length === 0) return heads;
      let start = 0;
      for (let end = piece.indexOf(0x0a); end >= 0; end = piece.indexOf(0x0a, start)) {
        const length = at + end - from;
        const beginning = Buffer.concat([begun, piece.subarray(start, Math.min(end, start + headBytes))]);
        const whole = async () => (await readRange(handle, from, length)).toString('utf8');
        const head =
          length > mostLineBytes ? undefined : (headOf(beginning.toString('utf8')) ?? headOfWhole(await whole()));
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

/** From a line's beginning, where that holds everything before the turns and the first state. */
function headOf(beginning: string): Head | undefined {
  const turns = beginning.indexOf(',"turns":[');
  if (turns < 0) return undefined;
  const facts = headSchema.safeParse(jsonOrNothing(`${beginning.slice(0, turns)}}`)).data;
  const state = /^,"turns":\[(?:\]|\{"turn":1,"state":("(?:[^"\\]|\\.)*"))/.exec(beginning.slice(turns));
  return facts && state ? { ...facts, first: hashOf(state[1] === undefined ? '' : (JSON.parse(state[1]) as string)) } : undefined; // prettier-ignore
}

/** From the whole line, whatever its order; undefined where it is no episode. */
function headOfWhole(line: string): Head | undefined {
  const parsed = episodeSchema.safeParse(jsonOrNothing(line)).data;
  return parsed && { ...headSchema.parse(parsed), first: hashOf(parsed.turns[0]?.state ?? '') };
}

const hashOf = (state: string): string =>
  state === '' ? '' : createHash('sha256').update(state).digest('base64').slice(0, 16);

/** Members of an episode's group, by member. */
export const groupOf = (heads: readonly EpisodeHead[], of: Pick<EpisodeHead, 'group_id'>): EpisodeHead[] =>
  heads.filter(head => head.group_id === of.group_id).sort((a, b) => a.member - b.member);

/** Best first; of equal scores the one that was before. */
export const byScore = (heads: readonly EpisodeHead[]): EpisodeHead[] => [...heads].sort((a, b) => b.score - a.score);

/** Whether two episodes were given the same prompt: the same seed of a tag, or the same first state. */
export const samePrompt = (a: EpisodeHead, b: EpisodeHead): boolean =>
  a.tag === b.tag && ((a.mode === b.mode && a.seed === b.seed) || (a.first !== '' && a.first === b.first));

/**
 * The files before (`-1`) or after (`1`) a step's, nearest first: those of the same kind, since validation plays the same prompts again
 * and again.
 */
export function stepsTowards(files: readonly StepFile[], { step, mode }: StepFile, direction: -1 | 1): StepFile[] {
  const same = files.filter(file => file.mode === mode && (direction < 0 ? file.step < step : file.step > step));
  return same.sort((a, b) => direction * (a.step - b.step));
}
