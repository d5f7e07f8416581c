// Writer of `episodes/index.jsonl` (protocol/episode-index.ts), beside each file of episodes. What it writes is derived, so that a failure to
// write it ends the index, never the run: the editor reads the rest from the episodes. When it is opened, as by a resume, lines that tell of
// more than the files hold are dropped.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addToIndex, indexLine, isIndexLine, type EpisodeIndexLine } from '../../protocol/episode-index';
import { jsonOrNothing } from '../../protocol/json';
import { episodeSchema, episodesFile, type Episode } from '../../protocol/run-folder';
import type { LogPiece } from './append-log';
import { LineLog, readLines } from './line-log';

export class EpisodeIndexLog {
  private log: LineLog | undefined;
  /** The whole file, where it was written anew since the last piece. */
  private anew: LogPiece | null = null;

  /** Opens or makes `file`; `path` gives the place of a file by its name in the run folder. */
  constructor(
    private readonly file: string,
    private readonly path: (name: string) => string,
  ) {
    this.attempt(() => this.open(line => this.isThere(line)));
  }

  /** Tells of episodes that were appended to the file of `mode` and `step` from byte `from` on, each with the offset behind its line. */
  append(mode: 'train' | 'val', step: number, from: number, episodes: readonly (readonly [Episode, number])[]): void {
    this.attempt(() => {
      const line = indexLine(mode, step, from);
      for (const [episode, to] of episodes) addToIndex(line, episode, to);
      if (episodes.length > 0) this.log?.append(line);
    });
  }

  /** The file of `mode` and `step` is written anew. */
  forget(mode: 'train' | 'val', step: number): void {
    this.attempt(() => {
      this.close();
      this.open(line => line.mode !== mode || line.step !== step);
    });
  }

  /** Pieces of the log `file` since the last call. */
  takePieces(file: string): LogPiece[] {
    const pieces = [this.anew && { ...this.anew, file }, this.log?.takePiece(file) ?? null];
    this.anew = null;
    return pieces.filter(piece => piece !== null);
  }

  close(): void {
    this.log?.close();
    this.log = undefined;
  }

  /** Opens the log with those of its lines that are wanted. */
  private open(wanted: (line: EpisodeIndexLine) => boolean): void {
    const { file } = this;
    const lines = [...readLines(file)].map(({ text }) => text);
    const standing = lines.filter(text => {
      const line: unknown = JSON.parse(text);
      return isIndexLine(line) && wanted(line);
    });
    if (standing.length < lines.length) {
      const text = standing.map(line => `${line}\n`).join('');
      writeFileSync(`${file}.new`, text);
      renameSync(`${file}.new`, file);
      const sha256 = createHash('sha256').update(text).digest('hex');
      this.anew = { file, from: 0, to: Buffer.byteLength(text), sha256 };
    }
    this.log = new LineLog(file, { fsync: 'explicit' });
  }

  private isThere({ mode, step, to }: EpisodeIndexLine): boolean {
    const path = this.path(episodesFile(mode, step));
    return existsSync(path) && statSync(path).size >= to;
  }

  private attempt(work: () => void): void {
    try {
      work();
    } catch {
      this.close();
    }
  }
}

/** Makes the index of a run's episodes anew from the files of episodes in `folder`. Lines of them that are damaged are left out. */
export function rebuildIndex(file: string, folder: string): void {
  const files = (existsSync(folder) ? readdirSync(folder) : []).flatMap(name => {
    const [, mode, step] = /^(step|val)-(\d{6,})\.jsonl$/.exec(name) ?? [];
    return mode === undefined ? [] : [{ name, mode: mode === 'val' ? ('val' as const) : ('train' as const), step: Number(step) }]; // prettier-ignore
  });
  files.sort((a, b) => a.step - b.step || (a.mode < b.mode ? -1 : 1));
  rmSync(file, { force: true });
  const log = new LineLog(file, { fsync: 'explicit' });
  try {
    for (const { name, mode, step } of files) {
      const line = indexLine(mode, step, 0);
      let has = false;
      for (const { text, next } of readLines(join(folder, name))) {
        const episode = episodeSchema.safeParse(jsonOrNothing(text)).data;
        if (!episode) continue;
        addToIndex(line, episode, next);
        has = true;
      }
      if (has) log.append(line);
    }
  } finally {
    log.close();
  }
}
