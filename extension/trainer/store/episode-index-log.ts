// Writer of `episodes/index.jsonl` (protocol/episode-index.ts), beside each file of episodes. What it writes is derived, so that a failure to
// write it ends the index, never the run: the editor reads the rest from the episodes. When it is opened, as by a resume, lines that tell of
// more than the files hold are dropped.
import { existsSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { addToIndex, indexLine, isIndexLine, type EpisodeIndexLine } from '../../protocol/episode-index';
import { episodesFile, type Episode } from '../../protocol/run-folder';
import { LineLog, readLines } from './line-log';

export class EpisodeIndexLog {
  private log: LineLog | undefined;

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
      writeFileSync(`${file}.new`, standing.map(text => `${text}\n`).join(''));
      renameSync(`${file}.new`, file);
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
