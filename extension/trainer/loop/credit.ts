// The credit of the sampled tokens of a batch, by the mask of `workbench.credit_mask`: a built-in one or one of the
// workspace.
import type { WeighedSample } from '../../../envs/api/plugins/mask';
import { builtInMasks, creditWeights, turnLogprobs } from '../../algorithms/credit-mask';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { isPluginPath } from '../config/plugin-path';
import type { RunConfig } from '../config/schema';
import { weighWith } from '../plugins/plugin-mask';
import type { PluginSet } from '../plugins/plugin-set';
import type { BatchSample } from './training-batch';

/** The parts of a run that a mask uses. */
export interface WeighingRun {
  readonly config: RunConfig;
  readonly tokenizer: Pick<ChatTokenizer, 'decode'>;
  readonly plugins: { readonly set: Pick<PluginSet, 'plugin'> };
}

/**
 * Returns one weight per token for each sample, with the mean 1 over the sampled tokens; null without a mask.
 * @throws PluginError if the mask is the workspace's, and fails or returns an invalid value
 */
export async function creditOf(
  { config, tokenizer, plugins }: WeighingRun,
  samples: readonly (Pick<BatchSample, 'ids' | 'logprobs'> & { sample: Pick<BatchSample['sample'], 'turns'> })[],
  step: number,
): Promise<Float32Array[] | null> {
  const { credit_mask: name } = config.workbench;
  if (name === 'none') return null;
  const sampled = samples.map(({ logprobs, sample }) => ({ logprobs, spans: sample.turns.map(({ span }) => span) }));
  const logprobs = sampled.map(turnLogprobs);
  if (!isPluginPath(name)) {
    const shown = logprobs.map(turns => ({ turns: turns.map(each => ({ logprobs: each })) }));
    return creditWeights(sampled, builtInMasks[name].weigh(shown));
  }
  const texts = new Map<number, string>();
  const textOf = (id: number): string => {
    const text = texts.get(id) ?? tokenizer.decode([id], { special: true });
    texts.set(id, text);
    return text;
  };
  const shown = samples.map(({ ids }, index): WeighedSample => ({
    turns: sampled[index].spans.map(([from, to], turn) => ({
      // a copy: a view would send the log-probs of the whole sample to the plug-in
      logprobs: logprobs[index][turn].slice(),
      texts: Array.from(ids.subarray(from, to), textOf),
    })),
  }));
  return creditWeights(sampled, await weighWith(plugins.set.plugin(name), shown, { step }));
}
