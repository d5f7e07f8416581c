// The peak of a process's resident memory, files it has mapped included. On Linux it is read from /proc: getrusage's ru_maxrss, which is
// all there is elsewhere, begins with what the parent held when it forked.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Reading } from './benchmark';

/** What a measured process prints as its last line. */
export interface PeakReport {
  peak_mib: number;
  /** The peak before the work began: runtime and libraries. */
  start_mib: number;
}

/** This process's peak so far in MiB. */
export function peakMemory(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS / 1024;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024;
}

/** Runs a process that prints a PeakReport; `input` is written to it. */
export async function measurePeak(
  command: string,
  args: readonly string[],
  { input = '', env = process.env } = {},
): Promise<Reading> {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(input);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.on('error', error => reject(new Error(`bench: cannot start ${command}: ${error.message}`)));
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  if (code !== 0) throw new Error(`bench: ${command} ended with ${code} while its memory was measured`);
  const { peak_mib, start_mib } = JSON.parse(printed.trim().split('\n').at(-1)!) as PeakReport;
  return { value: peak_mib, how: `of it ${Math.round(start_mib)} MiB before the work began` };
}
