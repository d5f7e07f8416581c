// Explains why a trainer ended. The explanation is the last error in the trainer's log or, without one, the exit code
// or signal.
import { closeSync, existsSync, fstatSync, readSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { endedBySystem, explainExit } from '../../common/process-exit';
import { openRegularSync } from '../../node/bounded-file';
import { runFiles } from '../../run-data/run-file-names';
import { folderGone } from '../../trainer/store/held-lease';
import type { RunFolder } from '../../trainer/store/run-folder';
import type { TrainerExit, TrainerProcess } from './trainer-exit';

/**
 * Explains why a trainer ended before it served its run. Called if the run's status contains no error. Returns the last
 * error in the trainer's log or, without one, the trainer's exit code or signal.
 */
export function endBeforeServing(folder: RunFolder, pid: number | undefined, end: TrainerExit): string {
  const log = folder.file(runFiles.log);
  // Before a trainer ends its own process by a signal, it logs a fatal error. If a signal ended the process, an error
  // of a lower level is therefore not the cause.
  const logged = lastError(folder, pid, endedBySystem(end.code, end.signal) ? levels.fatal : levels.error);
  return (
    logged ?? `trainer of ${folder.id}: before it served the run, it ${explainExit(end.code, end.signal)} (log: ${log})`
  );
}

/** pino's log levels: an error, and an error that ended the process at once. */
const levels = { error: 50, fatal: 60 };

/** Returns the message of the last error that process `pid` logged at `level` or above. */
const lastError = (folder: RunFolder, pid: number | undefined, level: number): string | undefined =>
  logTail(folder)
    .split('\n')
    .flatMap(line => errorOf(line, pid, level) ?? [])
    .at(-1);

/** Maximum bytes read from the end of the log to find the last error. */
const logTailBytes = 2 ** 20;

/** Returns the last `logTailBytes` of a run's log; empty if the log is not a regular file of the run folder. */
function logTail(folder: RunFolder): string {
  let fd: number | undefined;
  try {
    fd = openRegularSync(folder.file(runFiles.log), folder.path);
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, logTailBytes));
    return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, size - bytes.length));
  } catch {
    return '';
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Maximum milliseconds to wait for the exit event of a trainer that has ended. */
const reapMs = 1000;

/**
 * Explains why a trainer ended while its run was unfinished. Returns the fatal error in the trainer's log or, without
 * one, the exit code or signal. Exit code and signal are known only if this process started the trainer and observed
 * the exit.
 */
export async function unexplainedEnd(folder: RunFolder, trainer: TrainerProcess): Promise<string> {
  for (const deadline = performance.now() + reapMs; trainer.ended() === null && performance.now() < deadline;)
    await sleep(20);
  if (!existsSync(folder.path)) return folderGone(folder);
  if (trainer.explain) return trainer.explain();
  const log = folder.file(runFiles.log);
  const end = trainer.ended();
  const logged = lastError(folder, trainer.pid, levels.fatal);
  if (logged !== undefined) return logged;
  return end
    ? `trainer of ${folder.id}: it ${explainExit(end.code, end.signal)} (log: ${log}; resume it with ragen resume ${folder.id})`
    : `trainer of ${folder.id}: it exited unexpectedly: see ${log}, then run ragen resume ${folder.id}`;
}

/** Returns the message of a log line if process `pid` logged it at `level` or above. */
function errorOf(line: string, pid: number | undefined, level: number): string | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const entry = JSON.parse(line) as { level?: number; pid?: number; msg?: string };
    return entry.pid === pid && entry.level !== undefined && entry.level >= level ? entry.msg : undefined;
  } catch {
    return undefined; // output of an environment
  }
}
