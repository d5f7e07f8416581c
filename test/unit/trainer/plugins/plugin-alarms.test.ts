// Alarms of the workspace with the definitions of the built-in alarms: they have the same bounds and are raised in the
// same steps with the same sentences.
import { describe, expect, it } from 'vitest';
import type { AlarmPlugin } from '../../../../envs/api/plugins/alarm';
import { alarmNames, alarmRules } from '../../../../extension/run-data/alarm-rules';
import { nothingWatched, watchStep } from '../../../../extension/trainer/diagnostics/alarms';
import { ruleOf } from '../../../../extension/trainer/plugins/checked-alarm';
import type { CallablePlugin } from '../../../../extension/trainer/plugins/checked-values';
import { pluginRules } from '../../../../extension/trainer/plugins/plugin-alarms';

/** Returns a plug-in that defines a built-in alarm. */
function pluginOf(name: (typeof alarmNames)[number]): CallablePlugin {
  const { bound, basis: _, ...properties } = alarmRules[name];
  return {
    path: `plugins/${name}.ts`,
    description: { kind: 'alarm', name, functions: ['bound'], properties: { name, ...properties } },
    call: async (_function, ...args) => bound(...(args as Parameters<typeof bound>)),
  };
}

const plugins = {
  set: {
    pathsOf: () => alarmNames.map(name => `plugins/${name}.ts`),
    plugin: (path: string) => pluginOf(alarmNames.find(name => path === `plugins/${name}.ts`)!),
  },
  failed: (_path: string, error: Error | null) => {
    if (error) throw error;
  },
};

/** A run whose metrics are calm for 12 steps and then pass the bounds of all alarms; one metric is in the other unit. */
const steps = Array.from({ length: 20 }, (_, i): Record<string, number> => {
  const bad = i >= 12;
  return {
    'rollout/in_group_reward_std': bad ? 0.01 : 0.5,
    'actor/grad_norm': i === 13 ? 20 : 1,
    'actor/entropy': i >= 12 && i < 15 ? 6.5 : bad ? 0.01 : 5,
    ...(i < 12 && { 'actor/entropy_limit': 7 }), // read from an earlier step later on
    'thoughts/most_frequent': bad ? 0.9 : 0.1,
    'thoughts/distinct_2': bad ? 0.01 : 0.5,
    'response_length/characters': bad ? 500 : 100,
    'rollout/invalid_answer_rate': bad ? 1 : 0,
    'thoughts/rate': bad ? 0 : 1,
    ...(i % 3 === 0 && { 'collapse_trajectory_sample/mi_estimate': bad ? 0.1 : 1 }),
  };
});

describe('an alarm of the workspace', () => {
  it('keeps every property that a rule can have', () => {
    const properties: Required<Omit<AlarmPlugin, 'kind' | 'bound'>> = {
      ...{ name: 'own', metric: 'plugins/a', label: 'a', side: 'over', steps: 2 },
      ...{ instead: 'plugins/b', limit: 'plugins/c', measured: 'diagnoses' },
    };
    const rule = ruleOf({ kind: 'alarm', name: 'own', functions: ['bound'], properties }, 'plugins/own.ts');
    expect({ name: 'own', ...rule }).toEqual(properties);
  });

  it('is raised as the built-in alarm with the same definition', async () => {
    let state = nothingWatched;
    const raised = new Set<string>();
    for (const metrics of steps) {
      const own = await pluginRules(plugins, state, metrics);
      const { state: next, alarms } = watchStep(state, metrics, own);
      const builtIn = alarms.filter(({ name }) => !name.startsWith('plugins/'));
      const ofPlugins = alarms.filter(({ name }) => name.startsWith('plugins/'));
      expect(ofPlugins).toEqual(builtIn.map(alarm => ({ ...alarm, name: `plugins/${alarm.name}` })));
      builtIn.forEach(({ name }) => raised.add(name));
      state = next;
    }
    expect([...raised].sort()).toEqual([...alarmNames].sort());
  });
});
