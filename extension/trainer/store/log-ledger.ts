// The ledger `checksums.jsonl`: checksums of a run's logs, piece by piece. A line contains a file name, a byte range of
// this file, and the sha256 of these bytes; `chain` is a hash of the line and of the previous line's `chain`. A
// checkpoint stores the last `chain`. If a log or the ledger is later changed in a part that was written before the
// checkpoint, the hashes no longer match. Pieces are hashed while they are appended, so writing a checkpoint reads no
// logs.
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { lstat, open, readdir, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { runFiles } from '../../run-data/run-file-names';
import type { LogPiece } from './append-log';
import { digestFile, storeError } from '../../node/files';
import { LineLog, readLines } from './line-log';

const blockBytes = 1 << 20;

/** Name of a file relative to the run folder. The pattern excludes paths that lead out of the folder. */
const fileName = z.string().regex(/^(?!\.)[\w.-]+(\/(?!\.)[\w.-]+)?$/);
const lineSchema = z.strictObject({
  file: fileName,
  from: z.int().min(0),
  to: z.int().min(0),
  sha256: z.string(),
  chain: z.string(),
});

/** Length and last `chain` of the ledger at the time of a checkpoint. */
export interface LedgerMark {
  offset: number;
  chain: string | undefined;
}

/** A log whose content differs from what the trainer wrote. */
export interface LogDamage {
  file: string;
  /** Description of the damage, worded to follow the file's name, such as `ends at byte 10 …`. */
  how: string;
  /** True if the file is missing. */
  gone: boolean;
}

/** Value of `how` for a missing file. */
export const isGone = 'is gone';

/** The result of checking the logs. */
export interface LogCheck {
  damages: LogDamage[];
  /** For each file, the number of bytes that have checksums. */
  covered: Map<string, number>;
}

const link = (chain: string, { file, from, to, sha256 }: LogPiece): string =>
  createHash('sha256')
    .update(`${chain}\n${JSON.stringify([file, from, to, sha256])}`)
    .digest('hex');

/** Writer of the ledger. Only one writer may exist at a time. Errors are UserErrors. */
export class LogLedger {
  private readonly log: LineLog;
  private chain = '';
  private pending: LogPiece[] = [];

  constructor(file: string) {
    this.log = new LineLog(file, { fsync: 'explicit' });
    for (const { text } of readLines(file)) this.chain = /"chain":"([0-9a-f]{64})"\}$/.exec(text)?.[1] ?? '';
  }

  /** Queues a piece that was appended to a log; null is ignored. */
  note(piece: LogPiece | null): void {
    if (piece) this.pending.push(piece);
  }

  /** Appends the queued pieces in one write. After a failure, the call can be repeated. */
  flush(): void {
    if (this.pending.length === 0) return;
    let chain = this.chain;
    const lines = this.pending.map(piece => ({ ...piece, chain: (chain = link(chain, piece)) }));
    this.log.appendAll(lines);
    this.chain = chain;
    this.pending = [];
  }

  sync(): void {
    this.log.sync();
  }

  /** Length and last `chain` of the written ledger, for a checkpoint. */
  get mark(): { offset: number; chain: string } {
    return { offset: this.log.offset, chain: this.chain };
  }

  close(): void {
    this.log.close();
  }
}

/**
 * Compares the logs of a run with the ledger, reading each log once. Changes no file.
 * @param mark end of the ledger at the time of the checkpoint; if null, all pieces are compared
 * @param wanted returns false for files that are not checked
 */
export async function checkLogs(
  runFolder: string,
  mark: LedgerMark | null,
  wanted: (file: string) => boolean = () => true,
): Promise<LogCheck> {
  const ledger = readLedger(join(runFolder, runFiles.checksums), mark);
  if ('how' in ledger)
    return { damages: [{ file: runFiles.checksums, how: ledger.how, gone: false }], covered: new Map() };
  const damages: LogDamage[] = [];
  const covered = new Map<string, number>();
  for (const [file, pieces] of ledger.pieces) {
    if (!wanted(file)) continue;
    covered.set(file, pieces.at(-1)!.to);
    const damage = await checkFile(join(runFolder, file), pieces);
    if (damage) damages.push({ file, ...damage });
  }
  return { damages, covered };
}

/**
 * Returns the pieces of each file, in order; overwritten pieces are omitted. If the ledger is damaged, returns a
 * description of the damage (`how`), worded to follow the file name.
 */
function readLedger(file: string, mark: LedgerMark | null): { pieces: Map<string, LogPiece[]> } | { how: string } {
  if (!existsSync(file)) return { how: isGone };
  const pieces = new Map<string, LogPiece[]>();
  let [chain, line, end] = ['', 0, 0];
  for (const { text, next } of readLines(file)) {
    if (mark && next > mark.offset) break;
    line++;
    const parsed = lineSchema.safeParse(jsonOf(text));
    if (!parsed.success || link(chain, parsed.data) !== parsed.data.chain)
      return { how: `does not match its own checksum in line ${line} (bytes ${end} to ${next})` };
    const { chain: next_, ...piece } = parsed.data;
    chain = next_;
    const listed = pieces.get(piece.file) ?? [];
    while (listed.length > 0 && listed.at(-1)!.to > piece.from) listed.pop();
    listed.push(piece);
    pieces.set(piece.file, listed);
    end = next;
  }
  if (mark && (end !== mark.offset || (mark.chain !== undefined && chain !== mark.chain)))
    return { how: `does not match the checkpoint (expected ${mark.offset} bytes)` };
  return { pieces };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function checkFile(path: string, pieces: readonly LogPiece[]): Promise<Omit<LogDamage, 'file'> | undefined> {
  try {
    if (!(await lstat(path)).isFile()) return { how: 'is not a regular file', gone: false };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { how: isGone, gone: true };
    throw storeError('read', path, error);
  }
  const handle = await open(path, 'r').catch((error: unknown) => {
    throw storeError('read', path, error);
  });
  try {
    const block = Buffer.allocUnsafe(blockBytes);
    let lines = 0;
    for (const { from, to, sha256 } of pieces) {
      const hash = createHash('sha256');
      const first = lines + 1;
      for (let at = from; at < to;) {
        const { bytesRead } = await handle.read(block, 0, Math.min(block.length, to - at), at);
        if (bytesRead === 0)
          return { how: `ends at byte ${at}, but ${pieces.at(-1)!.to} bytes were written`, gone: false };
        const part = block.subarray(0, bytesRead);
        hash.update(part);
        for (let i = part.indexOf(10); i >= 0; i = part.indexOf(10, i + 1)) lines++;
        at += bytesRead;
      }
      if (hash.digest('hex') === sha256) continue;
      const where = path.endsWith('.jsonl') && pieces[0].from === 0 ? `lines ${first} to ${lines}, ` : '';
      return { how: `differs from what the trainer wrote (${where}bytes ${from} to ${to})`, gone: false };
    }
    return undefined;
  } catch (error) {
    throw storeError('read', path, error);
  } finally {
    await handle.close();
  }
}

/**
 * Truncates files of episodes and diagnoses to the bytes that have checksums. The removed bytes were written after the
 * checkpoint, or by another program.
 */
export async function cutUncovered(runFolder: string, covered: ReadonlyMap<string, number>): Promise<void> {
  for (const [file, to] of covered) {
    const path = join(runFolder, file);
    // A resume truncates all other logs to the checkpoint's offsets (rollback.ts).
    if (!file.includes('/') || file.startsWith(runFiles.tensorboard)) continue;
    try {
      if ((await lstat(path)).size > to) await truncate(path, to);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw storeError('cut', path, error);
    }
  }
}

/** Starts a new ledger with checksums of the logs in their present state. */
export async function adoptLogs(runFolder: string): Promise<void> {
  const file = join(runFolder, runFiles.checksums);
  await rm(file, { force: true });
  const ledger = new LogLedger(file);
  try {
    const folders = [runFiles.episodes, runFiles.diagnostics, runFiles.tensorboard];
    const inFolders = await Promise.all(
      folders.map(async folder =>
        (await readdir(join(runFolder, folder)).catch(() => [])).map(name => `${folder}/${name}`),
      ),
    );
    const files = [runFiles.metrics, runFiles.events, runFiles.scores, ...inFolders.flat().sort()];
    for (const name of files) {
      if (name === runFiles.episodeIndex || !fileName.safeParse(name).success) continue;
      const size = await lstat(join(runFolder, name)).then(
        stat => (stat.isFile() ? stat.size : 0),
        () => 0,
      );
      if (size > 0)
        ledger.note({
          file: name,
          from: 0,
          to: size,
          sha256: (await digestFile(join(runFolder, name), { to: size })).sha256,
        });
    }
    ledger.flush();
    ledger.sync();
  } finally {
    ledger.close();
  }
}
