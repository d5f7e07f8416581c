// Credit masks of the workspace: calls a mask in the process of plug-ins, and checks the weights that it returns.
import type { MaskSettings, WeighedSample } from '../../../envs/api/plugins/mask';
import { badValue, checkedList, checkedNumbers, type CallablePlugin } from './checked-values';

/** Weighs the tokens of samples. @throws PluginError if the mask fails or returns an invalid value */
export async function weighWith(
  plugin: CallablePlugin,
  samples: readonly WeighedSample[],
  settings: MaskSettings,
): Promise<Float32Array[][]> {
  const called = { path: plugin.path, function: 'weigh' };
  const value = await plugin.call('weigh', samples, settings);
  return checkedList(called, value, samples.length, 'lists of turns').map((turns, sample) =>
    checkedList(called, turns, samples[sample].turns.length, `turns of sample ${sample}`).map((row, turn) => {
      const { length } = samples[sample].turns[turn].logprobs;
      const one = (token: number) => `token ${token} of turn ${turn + 1} of sample ${sample}`;
      const weights = checkedNumbers(called, row, new Float32Array(length), 'weights', one);
      const negative = weights.findIndex(weight => weight < 0);
      if (negative >= 0)
        throw badValue(called, `returned ${weights[negative]} for ${one(negative)}`, 'return weights of at least 0');
      return weights;
    }),
  );
}
