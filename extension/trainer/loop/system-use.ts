// Measures what a step uses of the machine, for the `perf/*` metrics: processor, memory and NVIDIA GPUs. Nothing waits
// for a measurement: the GPUs are asked in the background, and the answer is logged with the next step. The metrics have
// no influence on training.
import { execFile } from 'node:child_process';
import { cpus, freemem, totalmem } from 'node:os';
import { programEnvironment } from '../../../envs/api/program-environment';

/** Use of all GPUs of the machine. */
export interface GpuUse {
  /** Mean share of time in which a GPU was busy, 0 to 1; undefined if the driver does not report it. */
  busy?: number;
  /** Used memory of all GPUs in MB; undefined if the driver does not report it. */
  memoryMb?: number;
}

/** Sources of the measurements; tests replace them. */
export interface SystemSources {
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Processor time of this process in milliseconds, over all threads. */
  processorMs(): number;
  /** Times of all processors of the machine since its start, in milliseconds. */
  machineMs(): { busy: number; total: number };
  /** Share of the machine's memory that is in use, 0 to 1. */
  memory(): number;
  /** Returns the use of the GPUs; null if the machine has no driver that can be asked. */
  gpu(): Promise<GpuUse | null>;
}

export class SystemUse {
  private before: { now: number; processor: number; machine: { busy: number; total: number } };
  private gpu: GpuUse | null = null;
  private asking = false;
  private hasGpu = true;

  constructor(private readonly sources: SystemSources = machine) {
    this.before = this.read();
    this.askGpu();
  }

  /** Returns the metrics of the time since the last call. */
  metrics(): Record<string, number> {
    const { before } = this;
    const after = (this.before = this.read());
    const total = after.machine.total - before.machine.total;
    const { gpu } = this;
    this.askGpu();
    return {
      ...(after.now > before.now && {
        'perf/cpu_cores': (after.processor - before.processor) / (after.now - before.now),
      }),
      ...(total > 0 && { 'perf/cpu_machine': (after.machine.busy - before.machine.busy) / total }),
      'perf/memory_machine': this.sources.memory(),
      ...(gpu?.busy !== undefined && { 'perf/gpu_busy': gpu.busy }),
      ...(gpu?.memoryMb !== undefined && { 'perf/gpu_memory_mb': gpu.memoryMb }),
    };
  }

  private read(): SystemUse['before'] {
    const { now, processorMs, machineMs } = this.sources;
    return { now: now(), processor: processorMs(), machine: machineMs() };
  }

  private askGpu(): void {
    if (this.asking || !this.hasGpu) return;
    this.asking = true;
    void this.sources.gpu().then(use => {
      this.asking = false;
      this.hasGpu = use !== null;
      this.gpu = use;
    });
  }
}

/**
 * Parses the answer of `nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader,nounits`: one line per
 * GPU, with per cent and MiB. A value such as `[N/A]` is left out. Returns null if no line has a number.
 */
export function parseGpuUse(text: string): GpuUse | null {
  const rows = text.split('\n').map(line => line.split(',').map(cell => cell.trim()));
  const column = (at: number): number[] =>
    rows.flatMap(cells => (/^\d+(\.\d+)?$/.test(cells[at] ?? '') ? [Number(cells[at])] : []));
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  const [busy, memory] = [column(0), column(1)];
  if (busy.length + memory.length === 0) return null;
  return {
    ...(busy.length > 0 && { busy: sum(busy) / busy.length / 100 }),
    ...(memory.length > 0 && { memoryMb: sum(memory) }),
  };
}

const gpuQuery = ['--query-gpu=utilization.gpu,memory.used', '--format=csv,noheader,nounits'];

const machine: SystemSources = {
  now: () => performance.now(),
  processorMs() {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  },
  machineMs() {
    const times = cpus().map(({ times: each }) => each);
    const total = times.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0);
    return { busy: total - times.reduce((sum, { idle }) => sum + idle, 0), total };
  },
  memory: () => 1 - freemem() / totalmem(),
  gpu: () =>
    new Promise(resolve => {
      execFile(
        'nvidia-smi',
        gpuQuery,
        { timeout: 5000, windowsHide: true, env: programEnvironment() },
        (error, stdout) => resolve(error ? null : parseGpuUse(stdout)),
      ).unref();
    }),
};
