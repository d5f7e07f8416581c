// The use of the machine by a step: rates since the last step, and GPUs that are asked in the background.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseGpuUse, SystemUse, type GpuUse, type SystemSources } from '../../../../extension/trainer/loop/system-use';

/** Sources that the test sets by hand. */
function sourcesAt(gpu: () => Promise<GpuUse | null> = () => Promise.resolve(null)) {
  const at = { now: 0, processor: 0, busy: 0, total: 0 };
  const sources: SystemSources = {
    now: () => at.now,
    processorMs: () => at.processor,
    machineMs: () => ({ busy: at.busy, total: at.total }),
    memory: () => 0.25,
    gpu,
  };
  return { at, sources };
}

describe('the use of the machine', () => {
  it('is measured since the last step', () => {
    const { at, sources } = sourcesAt();
    const use = new SystemUse(sources);
    Object.assign(at, { now: 2000, processor: 5000, busy: 6000, total: 8000 });
    expect(use.metrics()).toEqual({ 'perf/cpu_cores': 2.5, 'perf/cpu_machine': 0.75, 'perf/memory_machine': 0.25 });
    Object.assign(at, { now: 3000, processor: 6000, busy: 6000, total: 12_000 });
    expect(use.metrics()).toMatchObject({ 'perf/cpu_cores': 1, 'perf/cpu_machine': 0 });
    expect(use.metrics()).toEqual({ 'perf/memory_machine': 0.25 }); // no time has passed
  });

  it('includes GPUs from the step after their answer, and never waits for them', async () => {
    const answers: ((use: GpuUse | null) => void)[] = [];
    const { sources } = sourcesAt(() => new Promise(resolve => answers.push(resolve)));
    const use = new SystemUse(sources);
    expect(use.metrics()).not.toHaveProperty(['perf/gpu_busy']);
    expect(answers).toHaveLength(1); // one question at a time
    answers[0]({ busy: 0.5, memoryMb: 1024 });
    await Promise.resolve();
    expect(use.metrics()).toMatchObject({ 'perf/gpu_busy': 0.5, 'perf/gpu_memory_mb': 1024 });
    expect(answers).toHaveLength(2);
    answers[1](null);
    await Promise.resolve();
    expect(use.metrics()).not.toHaveProperty(['perf/gpu_busy']);
    expect(answers).toHaveLength(2); // a machine without a driver is not asked again
  });

  it('measures this machine', () => {
    const use = new SystemUse();
    const began = performance.now();
    while (performance.now() - began < 30) Math.sqrt(began);
    const metrics = use.metrics();
    expect(metrics['perf/cpu_cores']).toBeGreaterThan(0);
    for (const key of ['perf/cpu_machine', 'perf/memory_machine'].filter(each => each in metrics)) {
      expect(metrics[key]).toBeGreaterThanOrEqual(0);
      expect(metrics[key]).toBeLessThanOrEqual(1);
    }
  });
});

describe('the answer of nvidia-smi', () => {
  it('is the mean use and the sum of memory over GPUs', () => {
    expect(parseGpuUse('40, 1000\n60, 500\n')).toEqual({ busy: 0.5, memoryMb: 1500 });
    expect(parseGpuUse('[N/A], 1000\n')).toEqual({ memoryMb: 1000 });
    for (const text of ['', 'No devices were found\n', '[N/A], [N/A]\n']) expect(parseGpuUse(text)).toBeNull();
  });

  it('never yields a value that is not a finite number', () => {
    fc.assert(
      fc.property(fc.string(), text => {
        for (const value of Object.values(parseGpuUse(text) ?? {})) expect(Number.isFinite(value)).toBe(true);
      }),
    );
  });
});
