// Step time estimates: for a measured run's own configuration, the estimate equals the measured time. Estimates
// increase with the work per step.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Manifest } from '../../../../extension/run-data/run-manifest';
import type { MetricsLine } from '../../../../extension/run-data/step-lines';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { measuredRun, stepTime, teaching, workloadOf } from '../../../../extension/trainer/plan/step-time';
import type { MeasuredRun, Workload } from '../../../../extension/trainer/plan/step-time';
import { partial } from '../../../support/partial';

const { config } = loadConfig({
  configName: 'quickstart',
  overrides: [],
  presetFolders: ['media/presets'],
  workspace: '/',
});
const manifest = partial<Manifest>({
  ...{ id: 'r1', name: 'first', model: { path: 'ragen-tiny', sha256: '', parameters: 372_864 } },
  config,
});
/** Metrics of a step of 4 s, including 1.5 s of rollout; every second step also has a validation of 9 s. */
const line = (step: number): MetricsLine => ({
  ...{ step, time: '', wall_s: step, 'timing_s/gen': 1.5, 'timing_s/update_actor': 2, 'perf/total_num_tokens': 20_000 },
  ...{ 'perf/rollout_tokens_per_s': 4000, 'perf/train_tokens_per_s': 5000, 'timing_s/step': step % 2 ? 4 : 13 },
  ...(step % 2 === 0 && { 'timing_s/testing': 9 }),
});
const measured = measuredRun(manifest, config, [1, 2, 3, 4].map(line))!;
const work = workloadOf(config, 372_864);

describe('the estimated step time', () => {
  it('of a measured run’s own configuration equals the measurement without validation', () => {
    const time = stepTime(work, 'ragen-tiny', 24, [measured])!;
    expect(time).toMatchObject({ basis: 'measured', run: { id: 'r1', name: 'first' } });
    expect(time.generation_s).toBeCloseTo(1.5);
    expect(time.step_s).toBeCloseTo(4);
    expect(time.total_s).toBeCloseTo(96);
    expect(time.tokens.sampled).toBeCloseTo(6000);
    expect(time.tokens.trained).toBeCloseTo(10_000);
  });

  it('of the quickstart is close to the measured time on two cores of an EPYC 7R13', () => {
    // Medians of steps 1 to 8, measured on that machine: 38 sampled tokens per episode, 251 tokens in all, three
    // quarters of these tokens are trained on.
    const played = { ...work, sampled: 37.6, tokens: 251, kept: 0.75 };
    const asPlayed = stepTime(played, 'ragen-tiny', 1, [])!;
    expect(Math.abs(asPlayed.generation_s / 0.97 - 1)).toBeLessThan(0.25);
    expect(Math.abs(asPlayed.training_s / 0.89 - 1)).toBeLessThan(0.25);
    // Lengths are unknown before the first rollout; the estimate is within a factor of two of the measured 1.9 s.
    const before = stepTime(work, 'ragen-tiny', 1, [])!.step_s;
    expect(before).toBeGreaterThan(0.95);
    expect(before).toBeLessThan(3.7);
  });

  it('doubles with twice the episodes', () => {
    const time = stepTime({ ...work, episodes: 2 * work.episodes }, 'ragen-tiny', 1, [measured])!;
    expect(time.step_s).toBeCloseTo(8);
  });

  it('of another model is scaled from a measured run, or from default rates without a run', () => {
    const large = { ...work, parameters: 5e8 };
    const scaled = stepTime(large, 'large', 1, [measured])!;
    expect(scaled.basis).toBe('scaled');
    expect(scaled.step_s).toBeGreaterThan(100);
    expect(stepTime(large, 'large', 1, [])!).toMatchObject({ basis: 'assumed', run: null });
  });

  it('on a GPU is estimated only from a run on a GPU', () => {
    expect(stepTime({ ...work, device: 'cuda' }, 'ragen-tiny', 1, [measured])).toBeNull();
    const onGpu = { ...measured, work: { ...measured.work, device: 'cuda' } };
    expect(stepTime({ ...work, device: 'cuda' }, 'ragen-tiny', 1, [onGpu])!.step_s).toBeCloseTo(4);
  });

  it('increases with every kind of work', () => {
    const size = fc.double({ min: 1, max: 1e4, noNaN: true });
    const works = fc.record({ parameters: size, episodes: size, sampled: size, tokens: size, passes: size });
    const more = fc.constantFrom('parameters', 'episodes', 'sampled', 'tokens', 'passes');
    fc.assert(
      fc.property(works, more, fc.boolean(), (part, what, adapters) => {
        const small: Workload = { ...work, ...part, adapters };
        const large = { ...small, [what]: 2 * small[what] };
        const time = (each: Workload) => stepTime(each, 'any', 1, [])!.step_s;
        expect(time(large)).toBeGreaterThan(time(small));
      }),
    );
  });

  it('includes the teacher: as measured, by its parameters, or not at all', () => {
    const taught = loadConfig({
      configName: 'quickstart',
      overrides: ['++workbench.distillation={teacher: large}'],
      presetFolders: ['media/presets'],
      workspace: '/',
    }).config;
    const secondsOf = (each: Workload, runs: MeasuredRun[]) => stepTime(each, 'ragen-tiny', 1, runs)!.step_s;
    const teaches = (parameters: number | null) => workloadOf(taught, 372_864, parameters);
    // The measured run trains 10,000 of its tokens in 2.5 s with one pass, and a teacher of its size only scores them.
    expect(secondsOf(teaches(372_864), [measured])).toBeCloseTo(4 + 2.5 / 3);
    expect(secondsOf(teaches(10 * 372_864), [measured])).toBeGreaterThan(4 + 2.5);
    expect(secondsOf(teaches(null), [measured])).toBeCloseTo(4);
    expect(teaching(teaches(null), 1, [measured])).toBeNull();

    const withTeacher = measuredRun(
      manifest,
      taught,
      [1, 2, 3].map(step => ({ ...line(step), 'timing_s/teacher': 0.5 })),
    )!;
    expect([withTeacher.scoring, withTeacher.rest]).toEqual([0.5, 2]);
    expect(secondsOf(teaches(null), [withTeacher])).toBeCloseTo(4);
    expect(secondsOf({ ...teaches(null), episodes: 2 * work.episodes }, [withTeacher])).toBeCloseTo(8);
    expect(secondsOf(work, [withTeacher])).toBeCloseTo(3.5);
  });

  it('ignores runs without training', () => {
    expect(measuredRun(manifest, config, [])).toBeNull();
    expect(measuredRun(manifest, config, [{ step: 0, time: '', wall_s: 1, 'timing_s/gen': 2 }])).toBeNull();
  });
});
