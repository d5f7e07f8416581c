// Writer of `episodes/index.jsonl` (run-data/episode-index-line.ts). The index is derived data: after a write error,
// the run goes on, the index is closed, and the editor reads later episodes from their files. When the index is opened,
// for example on resume, lines that refer to bytes beyond the end of an episode file are removed.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { addToIndex, indexLine, isIndexLine } from '../../run-data/episode-index-line';
import type { EpisodeIndexLine } from '../../run-data/episode-index-line';
import { jsonOrNothing } from '../../common/json';
import { episodeSchema } from '../../run-data/episode';
import { episodesFile } from '../../run-data/run-file-names';
import type { Episode } from '../../run-data/episode';
import type { LogPiece } from './append-log';
import { LineLog, readLines } from './line-log';

export class EpisodeIndexLog {
  private log: LineLog | undefined;
  /** The complete file as a piece, if it was rewritten since the last call of `takePieces`; otherwise null. */
  private anew: LogPiece | null = null;

  /**
   * Opens or creates `file`.
   * @param path returns the path of a file by its name in the run folder
   */
  constructor(
    private readonly file: string,
    private readonly path: (name: string) => string,
  ) {
    this.attempt(() => this.open(line => this.isThere(line)));
  }

  /**
   * Adds episodes to the index. These episodes were appended to the file of `mode` and `step`; the first of them begins
   * at byte `from`.
   * @param episodes each episode with the offset after its line
   */
  append(mode: 'train' | 'val', step: number, from: number, episodes: readonly (readonly [Episode, number])[]): void {
    this.attempt(() => {
      const line = indexLine(mode, step, from);
      for (const [episode, to] of episodes) addToIndex(line, episode, to);
      this.appendLine(line);
    });
  }

  /** Adds the episodes of a line; a line without episodes is not written. */
  appendLine(line: EpisodeIndexLine): void {
    this.attempt(() => {
      if (line.to > line.from) this.log?.append(line);
    });
  }

  /** Removes the lines about the file of `mode` and `step`; called before the file is rewritten. */
  forget(mode: 'train' | 'val', step: number): void {
    this.attempt(() => {
      this.close();
      this.open(line => line.mode !== mode || line.step !== step);
    });
  }

  /** Returns what was written to the index since the last call, as pieces of the log `file`. */
  takePieces(file: string): LogPiece[] {
    const pieces = [this.anew && { ...this.anew, file }, this.log?.takePiece(file) ?? null];
    this.anew = null;
    return pieces.filter(piece => piece !== null);
  }

  close(): void {
    this.log?.close();
    this.log = undefined;
  }

  /** Opens the log; removes the lines for which `wanted` returns false. */
  private open(wanted: (line: EpisodeIndexLine) => boolean): void {
    const { file } = this;
    const lines = [...readLines(file)].map(({ text }) => text);
    const current = lines.filter(text => {
      const line: unknown = JSON.parse(text);
      return isIndexLine(line) && wanted(line);
    });
    if (current.length < lines.length) {
      const text = current.map(line => `${line}\n`).join('');
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

/** Rebuilds the index from the files of episodes in `folder`; damaged lines are skipped. */
export function rebuildIndex(file: string, folder: string): void {
  const files = (existsSync(folder) ? readdirSync(folder) : []).flatMap(name => {
    const [, mode, step] = /^(step|val)-(\d{6,})\.jsonl$/.exec(name) ?? [];
    return mode === undefined
      ? []
      : [{ name, mode: mode === 'val' ? ('val' as const) : ('train' as const), step: Number(step) }];
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
