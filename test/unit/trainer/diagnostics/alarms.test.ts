// The conditions and texts of alarms.
import { describe, expect, it } from 'vitest';
import { alarmNames, alarmRules, boundsOver, streaksOver } from '../../../../extension/run-data/alarm-rules';
import type { AlarmName } from '../../../../extension/run-data/alarm-rules';
import { nothingWatched, activeAlarms, watchStep } from '../../../../extension/trainer/diagnostics/alarms';
import type { Alarm } from '../../../../extension/trainer/diagnostics/alarms';

/** Feeds the values of one metric to the monitor; returns the raised alarms by step, counted from 1. */
function watched(metric: string, values: readonly number[]): Map<number, Alarm[]> {
  let state = nothingWatched;
  const raised = new Map<number, Alarm[]>();
  values.forEach((value, i) => {
    const { state: next, alarms } = watchStep(JSON.parse(JSON.stringify(state)) as typeof state, { [metric]: value });
    state = next;
    if (alarms.length > 0) raised.set(i + 1, alarms);
  });
  return raised;
}
const names = (raised: Map<number, Alarm[]>): [number, string[]][] =>
  [...raised].map(([step, alarms]) => [step, alarms.map(({ name }) => name)]);
const repeat = (value: number, times: number): number[] => Array.from({ length: times }, () => value);

describe('the alarm monitor', () => {
  it('reports for how many steps reward deviation was below a tenth of the first steps’ mean', () => {
    const raised = watched('rollout/in_group_reward_std', [...repeat(0.5, 10), ...repeat(0.049, 6)]);
    expect(names(raised)).toEqual([[15, ['reward_variance']]]);
    expect(raised.get(15)![0]).toMatchObject({
      metric: 'rollout/in_group_reward_std',
      value: 0.049,
      bound: 0.05,
      sentence:
        'in-group reward std was below 10 % of its mean over the first 10 steps in each of the last 5 steps: 0.049, bound 0.05',
    });
  });

  it('reads the number of characters in runs that never have the number of tokens', () => {
    const raised = watched('response_length/characters', [...repeat(100, 10), ...repeat(201, 5)]);
    expect(names(raised)).toEqual([[15, ['response_length']]]);
    expect(raised.get(15)![0].metric).toBe('response_length/characters');
    let state = nothingWatched;
    for (let step = 1; step <= 15; step++) {
      const characters = step > 10 ? 1000 : 100;
      const found = watchStep(state, { 'response_length/mean': 20, 'response_length/characters': characters });
      state = found.state;
      expect(found.alarms).toEqual([]);
    }
  });

  it('raises no alarm for a short drop, or before the baseline has three steps', () => {
    expect(
      names(watched('rollout/in_group_reward_std', [...repeat(0.5, 10), ...repeat(0, 4), 0.5, ...repeat(0, 4)])),
    ).toEqual([]);
    expect(names(watched('rollout/in_group_reward_std', [0.5, 0.5, ...repeat(0, 5)]))).toEqual([]);
  });

  it('raises alarms from the third step of the baseline on, which grows to ten steps', () => {
    const raised = watched('rollout/in_group_reward_std', [0.5, 0.5, ...repeat(0, 10)]);
    expect(names(raised)).toEqual([[8, ['reward_variance']]]);
    expect(raised.get(8)![0].sentence).toBe(
      'in-group reward std was below 10 % of its mean over the first 3 steps in each of the last 5 steps: 0, bound 0.0333',
    );
    expect(names(watched('actor/grad_norm', [1, 1, 11, 11]))).toEqual([[4, ['gradient_spike']]]);
  });

  it('applies fixed bounds from the first step on', () => {
    expect(names(watched('rollout/invalid_answer_rate', repeat(1, 5)))).toEqual([[3, ['invalid_answers']]]);
    expect(names(watched('rollout/invalid_answer_rate', [0.1, 0.2, ...repeat(1, 5)]))).toEqual([
      [5, ['invalid_answers']],
    ]);
    expect(names(watched('thoughts/rate', [1, 1, 0.05, 0, 0]))).toEqual([[5, ['missing_thoughts']]]);
  });

  it('raises entropy_rise halfway to the maximum entropy if twice the mean exceeds the maximum', () => {
    let state = nothingWatched;
    const steps: [number, string[], number | undefined][] = [];
    [...repeat(5, 3), ...repeat(6.5, 3)].forEach((entropy, i) => {
      const { state: next, alarms } = watchStep(state, { 'actor/entropy': entropy, 'actor/entropy_limit': 7 });
      state = next;
      steps.push([i + 1, alarms.map(({ name }) => name), alarms.at(0)?.bound]);
    });
    expect(steps.filter(([, raised]) => raised.length > 0)).toEqual([[6, ['entropy_rise'], 6]]);
    expect(activeAlarms(state)[0].sentence).toBe(
      'entropy was above the midpoint between its mean over the first 3 steps and its maximum in each of the last 3 steps: 6.5, bound 6',
    );
    const limits = repeat(7, 6);
    expect(boundsOver(alarmRules.entropy_rise, [...repeat(5, 3), ...repeat(6.5, 3)], limits).at(-1)).toBe(6);
  });

  it('raises an alarm once, and again after its condition has ended', () => {
    const fall = repeat(0.01, 7);
    const raised = watched('rollout/in_group_reward_std', [...repeat(1, 10), ...fall, 1, ...fall]);
    expect(names(raised).map(([step]) => step)).toEqual([15, 23]);
  });

  it('raises an alarm for a spike of the gradient relative to earlier steps', () => {
    const raised = watched('actor/grad_norm', [...repeat(1, 12), 9.9, 1, 10.1, 1]);
    expect(names(raised)).toEqual([[15, ['gradient_spike']]]);
    expect(raised.get(15)![0].sentence).toBe(
      'gradient norm was above 10 × its median over the preceding 14 steps: 10.1, bound 10',
    );
  });

  it('raises alarms for rising and for falling entropy', () => {
    expect(names(watched('actor/entropy', [...repeat(0.6, 10), 1.3, 1.3, 1.3]))).toEqual([[13, ['entropy_rise']]]);
    expect(names(watched('actor/entropy', [...repeat(0.6, 10), ...repeat(0.05, 5)]))).toEqual([[15, ['entropy_drop']]]);
  });

  it.each<[AlarmName, number, number, number]>([
    ['thought_repetition', 0.1, 0.6, 3],
    ['thought_diversity', 0.4, 0.09, 5],
    ['response_length', 50, 101, 5],
    ['invalid_answers', 0.1, 0.95, 3],
  ])('raises %s', (name, usual, bad, steps) => {
    const raised = watched(alarmRules[name].metric, [...repeat(usual, 10), ...repeat(bad, steps)]);
    expect(names(raised)).toEqual([[10 + steps, [name]]]);
  });

  it('raises prompt_dependence below 40 % of the best earlier diagnosis, however long ago', () => {
    const metric = 'collapse_trajectory_sample/mi_estimate';
    const raised = watched(metric, [0.2, 0.5, 1, 0.9, 0.41, 0.8, 0.39, 0.3]);
    expect(names(raised)).toEqual([[7, ['prompt_dependence']]]);
    expect(raised.get(7)![0].sentence).toBe(
      'mutual information of prompt and reasoning was below 40 % of its best earlier value: 0.39, bound 0.4',
    );
    const slow = [...repeat(0.3, 10), 1, ...repeat(0.7, 25), 0.35];
    expect(names(watched(metric, slow))).toEqual([[slow.length, ['prompt_dependence']]]);
    expect(boundsOver(alarmRules.prompt_dependence, slow).at(-1)).toBe(0.4);
  });

  it('skips steps whose metric is missing or not finite', () => {
    let state = nothingWatched;
    const metric = 'rollout/in_group_reward_std';
    for (const value of [...repeat(1, 10), ...repeat(0, 4)]) ({ state } = watchStep(state, { [metric]: value }));
    ({ state } = watchStep(state, {}));
    ({ state } = watchStep(state, { [metric]: NaN }));
    expect(activeAlarms(state)).toEqual([]);
    const last = watchStep(state, { [metric]: 0 });
    expect(last.alarms.map(({ name }) => name)).toEqual(['reward_variance']);
    expect(activeAlarms(last.state)).toEqual(last.alarms);
  });

  it('returns the bounds of alarms for charts, and none while the baseline is incomplete', () => {
    const values = [...repeat(0.5, 10), NaN, 0.2, ...repeat(0.049, 5)];
    const bounds = boundsOver(alarmRules.reward_variance, values);
    expect(bounds.subarray(0, 7).every(Number.isNaN)).toBe(true);
    expect([...bounds.subarray(7, 10)]).toEqual(repeat(0.05, 3));
    expect(bounds[10]).toBeNaN();
    expect([...bounds.subarray(11)]).toEqual(repeat(0.05, 6));
    const norms = [...repeat(1, 12), 9.9, 1, 10.1, 1];
    const spike = watched('actor/grad_norm', norms).get(15)![0];
    expect(boundsOver(alarmRules.gradient_spike, norms)[14]).toBe(spike.bound);
  });

  it('has a rule for every name', () => {
    expect(Object.keys(alarmRules)).toEqual([...alarmNames]);
  });
});

it('reports how many of the required consecutive steps have exceeded the bound', () => {
  const long = [90, 90, 90];
  const values = [...Array<number>(10).fill(40), ...long, 40, ...long, 90];
  const rule = alarmRules.response_length;
  const { now, most } = streaksOver(rule, values, boundsOver(rule, values));
  const at = (row: number) => [now[row], most[row]];
  expect([at(9), at(12), at(13), at(17)]).toEqual([
    [0, 0],
    [3, 3],
    [0, 3],
    [4, 4],
  ]);
});
