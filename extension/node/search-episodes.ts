// Full-text search over the episodes of several runs. Reads the episode files as streams, so memory is bounded by one
// line and one chunk, and yields each hit as soon as its line has been read. Only regular files inside the run folders
// are read. A line that is no episode or exceeds `mostLineBytes` is skipped. The texts are those that `text:` terms of
// `ragen episodes` search: states, answers, the final state and the error.
import type { FileHandle } from 'node:fs/promises';
import { jsonOrNothing } from '../common/json';
import { episodeSchema, type Episode } from '../run-data/episode';
import { episodesFile, mostLineBytes, runFiles } from '../run-data/run-file-names';
import { namesInRun, openRunFile, requireLogSize } from './read-run-file';

/** The first place in an episode that contains the searched text. */
export interface EpisodeHit {
  /** Run folder. */
  folder: string;
  step: number;
  mode: 'train' | 'val';
  id: string;
  tag: string;
  /** Number of the turn; null if only the final state or the error contains the text. */
  turn: number | null;
  part: 'state' | 'answer' | 'final state' | 'error';
  /** The text around the hit in one line. */
  excerpt: string;
}

export interface EpisodeSearch {
  /** Ends the search; the generator then returns. */
  signal?: AbortSignal;
  /** Called before each file with the share of the files that have been searched, 0 to 1. */
  progress?(share: number): void;
}

/** Bytes read at a time. */
const chunkBytes = 1 << 18;
/** Characters of an excerpt before and after the hit. */
const around = 48;

/**
 * Yields the episodes that contain `text`, ignoring case: the runs in the given order, the newest step of each run
 * first. Skips runs and files that cannot be read. An empty text has no hits.
 */
export async function* searchEpisodes(
  folders: readonly string[],
  text: string,
  { signal, progress }: EpisodeSearch = {},
): AsyncGenerator<EpisodeHit> {
  const needle = text.toLowerCase();
  if (needle.trim() === '') return;
  // JSON escapes the same characters in every text, so a line without the escaped text contains no hit.
  const escaped = JSON.stringify(needle).slice(1, -1);
  for (const [i, folder] of folders.entries()) {
    const files = await filesOf(folder);
    for (const [k, { mode, step }] of files.entries()) {
      if (signal?.aborted) return;
      progress?.((i + k / files.length) / folders.length);
      for await (const line of linesOf(folder, episodesFile(mode, step), signal)) {
        if (signal?.aborted) return;
        if (!line.toLowerCase().includes(escaped)) continue;
        const { data } = episodeSchema.safeParse(jsonOrNothing(line));
        const place = data && hitIn(data, needle);
        if (place) yield { folder, step, mode, id: data.id, tag: data.tag, ...place };
      }
    }
  }
  progress?.(1);
}

/** Returns mode and step of each episode file, newest first. */
async function filesOf(folder: string): Promise<{ mode: 'train' | 'val'; step: number }[]> {
  const names = await namesInRun(folder, runFiles.episodes);
  return names
    .flatMap(name => {
      const [, kind, step] = /^(step|val)-(\d{6,})\.jsonl$/.exec(name) ?? [];
      return kind === undefined
        ? []
        : [{ mode: kind === 'val' ? ('val' as const) : ('train' as const), step: Number(step) }];
    })
    .sort((a, b) => b.step - a.step || a.mode.localeCompare(b.mode));
}

/** Yields the complete lines of a file; none if the file cannot be read. */
async function* linesOf(folder: string, name: string, signal: AbortSignal | undefined): AsyncGenerator<string> {
  let handle: FileHandle;
  try {
    handle = await openRunFile(folder, name);
  } catch {
    return; // missing, or not a regular file of the run
  }
  try {
    const { size } = await handle.stat();
    requireLogSize(name, size);
    let parts: Buffer[] = [];
    let held = 0;
    for (let at = 0; at < size && !signal?.aborted;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, at);
      if (bytesRead === 0) return; // the file was truncated meanwhile
      at += bytesRead;
      let from = 0;
      for (let end = buffer.indexOf(0x0a); end >= 0 && end < bytesRead; end = buffer.indexOf(0x0a, from)) {
        parts.push(buffer.subarray(from, end));
        if (held <= mostLineBytes) yield Buffer.concat(parts).toString('utf8');
        [parts, held, from] = [[], 0, end + 1];
      }
      held += bytesRead - from;
      if (held <= mostLineBytes) parts.push(buffer.subarray(from, bytesRead));
      else parts = []; // the line is skipped up to its end
    }
  } catch {
    // The file was deleted or cannot be read further: its remaining lines have no hits.
  } finally {
    await handle.close();
  }
}

function hitIn(
  { turns, final_state, error }: Episode,
  needle: string,
): Pick<EpisodeHit, 'turn' | 'part' | 'excerpt'> | null {
  for (const { turn, state, raw } of turns) {
    const inTurn = excerptOf(state, needle);
    if (inTurn !== null) return { turn, part: 'state', excerpt: inTurn };
    const inAnswer = excerptOf(raw, needle);
    if (inAnswer !== null) return { turn, part: 'answer', excerpt: inAnswer };
  }
  const atEnd = excerptOf(final_state, needle);
  if (atEnd !== null) return { turn: null, part: 'final state', excerpt: atEnd };
  const inError = excerptOf(error ?? '', needle);
  return inError === null ? null : { turn: null, part: 'error', excerpt: inError };
}

function excerptOf(text: string, needle: string): string | null {
  const at = text.toLowerCase().indexOf(needle);
  if (at < 0) return null;
  const [from, to] = [Math.max(0, at - around), Math.min(text.length, at + needle.length + around)];
  const excerpt = text.slice(from, to).replace(/\s+/g, ' ').trim();
  return `${from > 0 ? '…' : ''}${excerpt}${to < text.length ? '…' : ''}`;
}
