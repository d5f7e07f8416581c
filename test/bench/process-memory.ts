// Peak memory of a process, including mapped files. On Linux it is the highest proportional set size sampled from
// /proc, which counts a page once even if the process maps it repeatedly. Other systems report only resident memory,
// which counts every mapping.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Reading } from './benchmark';

/** The last line of output of a measured process. */
export interface PeakReport {
  peak_mib: number;
  /** The peak before the work: runtime and libraries. */
  start_mib: number;
}

/** Peak memory of this process so far in MiB. */
export function peakMemory(): number {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS / 1024;
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]) / 1024;
}

/** Sampling interval in milliseconds. */
const sampleEvery = 200;

/** Proportional set size of a process in MiB; 0 if the system does not provide it. */
function proportional(pid: number | undefined): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    return Number(/^Pss:\s+(\d+) kB$/m.exec(rollup)?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Runs a process that prints a PeakReport; `input` is written to its standard input. */
export async function measurePeak(
  command: string,
  args: readonly string[],
  { input = '', env = process.env } = {},
): Promise<Reading> {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  let sampled = 0;
  const sampling = setInterval(() => (sampled = Math.max(sampled, proportional(child.pid))), sampleEvery);
  child.stdin.end(input);
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (printed += text));
  const code = await new Promise<number | string | null>((resolve, reject) => {
    child.on('error', error => reject(new Error(`bench: cannot start ${command}: ${error.message}`)));
    child.on('close', (code, signal) => resolve(code ?? signal));
  });
  clearInterval(sampling);
  if (code !== 0) throw new Error(`bench: ${command} exited with code ${code} during the measurement`);
  const { peak_mib, start_mib } = JSON.parse(printed.trim().split('\n').at(-1)!) as PeakReport;
  const how = `resident ${Math.round(peak_mib)} MiB, of it ${Math.round(start_mib)} before the work began`;
  return { value: sampled || peak_mib, how };
}
