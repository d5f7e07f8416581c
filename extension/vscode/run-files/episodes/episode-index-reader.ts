// All episodes of a run as a table, kept up to date with the run folder. Most rows come from the index that the trainer
// writes (run-data/episode-index-line.ts). Files that the index does not fully cover are scanned, newest first, and the
// result is cached in the extension's storage. Rows are only appended. When existing rows become invalid, as after a
// resume from an earlier checkpoint, the table is rebuilt and `epoch` is incremented. Must not import `vscode`.
import { createHash } from 'node:crypto';
import { appendFile, lstat, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { jsonOrNothing } from '../../../common/json';
import { isIndexLine, type EpisodeIndexLine } from '../../../run-data/episode-index-line';
import { EpisodeTable } from '../../../run-data/episode-table';
import type { TextTerm } from '../../../run-data/episode-filter';
import type { EpisodeRef } from '../../../protocol/episodes-page';
import { mostLogBytes, namesInRun, openRunFile } from '../../../node/read-run-file';
import { episodeSchema, type Episode } from '../../../run-data/episode';
import { episodesFile, runFiles } from '../../../run-data/run-file-names';
import { JsonLines, readRange } from '../../../node/json-lines';
import type { EpisodeScanner, ScanFile, SearchFile } from './episode-scan';

/**
 * A file is scanned only if it has not changed for at least this many milliseconds. Until then, the trainer may still
 * be writing the file or its index line.
 */
const youngMs = 2000;

const lineSchema = z.custom<EpisodeIndexLine>(isIndexLine);

/** The episodes that one index line describes; they have consecutive rows in the table, starting at row `from`. */
interface Block {
  from: number;
  at: Float64Array;
  bytes: Int32Array;
  texts: Int32Array;
}
interface ReportedFile extends ScanFile {
  /** The table contains the episodes in the first `to` bytes of the file. */
  to: number;
  blocks: Block[];
}

export class EpisodeIndexReader {
  table = new EpisodeTable();
  epoch = 0;
  /** Share of the episode files' bytes that is already in the table, 0 to 1. */
  read = 0;
  private reported = new Map<string, ReportedFile>();
  private sources: JsonLines<EpisodeIndexLine>[];
  private readonly cache: string | null;
  private current: Promise<unknown> = Promise.resolve();

  /**
   * `storage` is the folder for indexes that the editor computes if the trainer wrote no index. If `storage` is null,
   * the indexes are stored in memory only.
   */
  constructor(
    private readonly folder: string,
    private readonly storage: string | null,
    private readonly scanner: EpisodeScanner,
  ) {
    this.cache = storage && join(storage, `${createHash('sha256').update(folder).digest('hex').slice(0, 24)}.jsonl`);
    this.sources = this.freshSources();
  }

  /**
   * Reads new episodes, and calls `grown` each time rows were added to the table. Returns true if a file was not
   * scanned because it changed less than `youngMs` ago. The caller should then call `update` again.
   */
  update(grown: () => void = () => undefined): Promise<boolean> {
    const next = this.current.then(() => this.readOn(grown));
    this.current = next.catch(() => undefined);
    return next;
  }

  /** Returns a complete episode, or null if the run has no episode with this id. */
  async episode({ mode, step, id }: EpisodeRef): Promise<Episode | null> {
    const reported = this.reported.get(episodesFile(mode, step));
    const row = this.table.find(id);
    for (const { from, at, bytes } of reported?.blocks ?? []) {
      const i = row - from;
      if (i < 0 || i >= at.length) continue;
      const handle = await openRunFile(this.folder, episodesFile(mode, step));
      try {
        const line = (await readRange(handle, at[i], bytes[i])).toString('utf8');
        const episode = episodeSchema.safeParse(jsonOrNothing(line)).data;
        if (episode?.id === id) return episode;
      } finally {
        await handle.close();
      }
    }
    return null;
  }

  /** Searches the texts of `rows`; see EpisodeScanner.search. */
  search(rows: Int32Array, terms: TextTerm[], found: (rows: Int32Array, share: number) => void): Promise<boolean> {
    const isSearched = new Uint8Array(this.table.rows);
    for (const row of rows) isSearched[row] = 1;
    const files: (SearchFile & { step: number })[] = [];
    for (const { path, step, blocks } of this.reported.values())
      for (const { from, at, texts } of blocks) {
        const chosen = Int32Array.from(at.keys()).filter(i => isSearched[from + i] === 1);
        if (chosen.length === 0) continue;
        const places = { at: Float64Array.from(chosen, i => at[i]), texts: Int32Array.from(chosen, i => texts[i]) };
        files.push({ path, step, ...places, rows: chosen.map(i => from + i) });
      }
    files.sort((a, b) => b.step - a.step); // newest first
    return this.scanner.search(files, terms, found);
  }

  private async readOn(grown: () => void): Promise<boolean> {
    const reported: EpisodeIndexLine[] = [];
    for (const source of this.sources) {
      const { lines, restarted } = await source.read();
      if (restarted && this.table.rows > 0) {
        this.restart();
        return this.readOn(grown);
      }
      for (const line of lines) reported.push(line);
    }
    // File sizes are read after the index lines, because the trainer appends to an episode file before it writes the
    // file's index line. If an index line nevertheless covers more bytes than its file has, the file was truncated and
    // the line is outdated.
    const sizes = await this.sizes();
    const gone = [...this.reported].some(([name, { to }]) => to > (sizes.get(name)?.size ?? 0));
    if (gone) {
      this.restart();
      return this.readOn(grown);
    }
    for (const line of reported) if (line.to <= (sizes.get(nameOf(line))?.size ?? 0)) this.add(line);
    const total = sum([...sizes.values()].map(({ size }) => size));
    const share = () => (total === 0 ? 1 : sum([...this.reported.values()].map(({ to }) => to)) / total);
    this.read = share();
    let young = false;
    const rest = [...sizes].filter(([name, { size }]) => (this.reported.get(name)?.to ?? 0) < size);
    for (const [name, { mtimeMs, file }] of rest.sort(([, a], [, b]) => b.file.step - a.file.step)) {
      if (Date.now() - mtimeMs < youngMs) {
        young = true;
        continue;
      }
      const line = await this.scanner.index(file, this.reported.get(name)?.to ?? 0);
      if (line.to === line.from) continue; // the file has no further complete line
      this.add(line);
      await this.keep(line);
      this.read = share();
      grown();
    }
    if (!young) this.read = 1; // the bytes without rows are incomplete last lines
    return young;
  }

  /**
   * Adds the episodes of an index line to the table. Ignores the line unless `line.from` equals `known.to`, the end of
   * the part of the file that is already in the table.
   */
  private add(line: EpisodeIndexLine): void {
    const name = nameOf(line);
    const { mode, step, columns } = line;
    const known = this.reported.get(name) ?? { path: join(this.folder, name), mode, step, to: 0, blocks: [] };
    if (line.from !== known.to) return; // its rows are already in the table
    const block = { at: Float64Array, bytes: Int32Array, texts: Int32Array };
    known.blocks.push({
      from: this.table.rows,
      at: block.at.from(columns.at as number[]),
      bytes: block.bytes.from(columns.bytes as number[]),
      texts: block.texts.from(columns.texts as number[]),
    });
    this.table.addLine(line);
    known.to = line.to;
    this.reported.set(name, known);
  }

  private restart(): void {
    this.epoch++;
    this.table = new EpisodeTable();
    this.reported.clear();
    this.sources = this.freshSources();
  }

  private freshSources(): JsonLines<EpisodeIndexLine>[] {
    const files = [join(this.folder, runFiles.episodeIndex), ...(this.cache ? [this.cache] : [])];
    return files.map(file => new JsonLines(file, lineSchema, file === this.cache ? dirname(file) : this.folder));
  }

  private async keep(line: EpisodeIndexLine): Promise<void> {
    if (!this.storage || !this.cache) return;
    try {
      await mkdir(this.storage, { recursive: true });
      await appendFile(this.cache, `${JSON.stringify(line)}\n`);
    } catch {
      // The disk is full or not writable, so the index line is not cached. The next reader scans the file again.
    }
  }

  /** Returns the sizes of the readable episode files, without files that exceed the size limit. */
  private async sizes(): Promise<Map<string, { size: number; mtimeMs: number; file: ScanFile }>> {
    const names = await namesInRun(this.folder, runFiles.episodes);
    const found = await Promise.all(
      names.map(async name => {
        const match = /^(step|val)-(\d{6,})\.jsonl$/.exec(name);
        if (!match) return [];
        const path = join(this.folder, runFiles.episodes, name);
        const [mode, step] = [match[1] === 'step' ? ('train' as const) : ('val' as const), Number(match[2])];
        const about = await lstat(path).catch(() => undefined); // lstat follows no link, so the file belongs to the run
        if (!about?.isFile() || about.size > mostLogBytes) return [];
        return [
          [
            `${runFiles.episodes}/${name}`,
            { size: about.size, mtimeMs: about.mtimeMs, file: { path, mode, step } },
          ] as const,
        ];
      }),
    );
    return new Map(found.flat());
  }
}

const nameOf = ({ mode, step }: Pick<EpisodeIndexLine, 'mode' | 'step'>): string => episodesFile(mode, step);
const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
