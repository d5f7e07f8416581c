// When the watch raises its alarms, and what it says.
import { describe, expect, it } from 'vitest';
import { alarmNames, alarmRules, boundsOver, streaksOver } from '../../../extension/protocol/alarm-rules';
import type { AlarmName } from '../../../extension/protocol/alarm-rules';
import { nothingWatched, standingAlarms, watchStep } from '../../../extension/trainer/diagnostics/alarms';
import type { Alarm } from '../../../extension/trainer/diagnostics/alarms';

/** Steps of one metric; the alarms by step, counted from 1. */
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
const names = (raised: Map<number, Alarm[]>): [number, AlarmName[]][] =>
  [...raised].map(([step, alarms]) => [step, alarms.map(({ name }) => name)]);
const repeat = (value: number, times: number): number[] => Array.from({ length: times }, () => value);

describe('the watch', () => {
  it('states how long reward deviation was under a tenth of its first steps', () => {
    const raised = watched('rollout/in_group_reward_std', [...repeat(0.5, 10), ...repeat(0.049, 6)]);
    expect(names(raised)).toEqual([[15, ['reward_variance']]]);
    expect(raised.get(15)![0]).toMatchObject({
      metric: 'rollout/in_group_reward_std',
      value: 0.049,
      bound: 0.05,
      sentence: 'in-group reward std fell under 10 % of its first-10-step mean for 5 steps: 0.049, bound 0.05',
    });
  });

  it('says nothing of a fall that does not last, or of one before there is a baseline', () => {
    expect(names(watched('rollout/in_group_reward_std', [...repeat(0.5, 10), ...repeat(0, 4), 0.5, ...repeat(0, 4)]))).toEqual([]); // prettier-ignore
    expect(names(watched('rollout/in_group_reward_std', [0.5, ...repeat(0, 9)]))).toEqual([]);
  });

  it('tells an alarm once, and again after it was over', () => {
    const fall = repeat(0.01, 7);
    const raised = watched('rollout/in_group_reward_std', [...repeat(1, 10), ...fall, 1, ...fall]);
    expect(names(raised).map(([step]) => step)).toEqual([15, 23]);
  });

  it('sees a spike of the gradient against the steps before it', () => {
    const raised = watched('actor/grad_norm', [...repeat(1, 12), 9.9, 1, 10.1, 1]);
    expect(names(raised)).toEqual([[15, ['gradient_spike']]]);
    expect(raised.get(15)![0].sentence).toBe(
      'gradient norm rose over 10 × the median of the 14 steps before: 10.1, bound 10',
    );
  });

  it('sees entropy run off either way', () => {
    expect(names(watched('actor/entropy', [...repeat(0.6, 10), 1.3, 1.3, 1.3]))).toEqual([[13, ['entropy_rise']]]);
    expect(names(watched('actor/entropy', [...repeat(0.6, 10), ...repeat(0.05, 5)]))).toEqual([[15, ['entropy_drop']]]);
  });

  it.each<[AlarmName, number, number, number]>([
    ['thought_repetition', 0.1, 0.6, 3],
    ['thought_diversity', 0.4, 0.09, 5],
    ['response_length', 50, 101, 5],
    ['invalid_answers', 0.1, 0.95, 3],
  ])('sees %s', (name, usual, bad, steps) => {
    const raised = watched(alarmRules[name].metric, [...repeat(usual, 10), ...repeat(bad, steps)]);
    expect(names(raised)).toEqual([[10 + steps, [name]]]);
  });

  it('passes over steps that lack a metric, or whose number is none', () => {
    let state = nothingWatched;
    const metric = 'rollout/in_group_reward_std';
    for (const value of [...repeat(1, 10), ...repeat(0, 4)]) ({ state } = watchStep(state, { [metric]: value }));
    ({ state } = watchStep(state, {}));
    ({ state } = watchStep(state, { [metric]: NaN }));
    expect(standingAlarms(state)).toEqual([]);
    const last = watchStep(state, { [metric]: 0 });
    expect(last.alarms.map(({ name }) => name)).toEqual(['reward_variance']);
    expect(standingAlarms(last.state)).toEqual(last.alarms);
  });

  it('draws the bounds that alarms are raised by, none while the baseline is made', () => {
    const values = [...repeat(0.5, 10), NaN, 0.2, ...repeat(0.049, 5)];
    const bounds = boundsOver(alarmRules.reward_variance, values);
    expect([...bounds.slice(0, 11)].every(Number.isNaN)).toBe(true);
    expect([...bounds.slice(11)]).toEqual(repeat(0.05, 6));
    const norms = [...repeat(1, 12), 9.9, 1, 10.1, 1];
    const spike = watched('actor/grad_norm', norms).get(15)![0];
    expect(boundsOver(alarmRules.gradient_spike, norms)[14]).toBe(spike.bound);
  });

  it('has a rule for every name', () => {
    expect(Object.keys(alarmRules)).toEqual([...alarmNames]);
  });
});

it('tells how near a metric has come to its alarm, which wants several steps in a row', () => {
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
