// Executes every engine operation of a run once, on one device: generation over several turns, scoring, updates in
// several passes with and without shared prefixes and with each loss, cross-scores, gradient measurement, critic,
// supervised training, state. Tests compare the numbers between devices. The operations build every graph of the
// product, so tests also read the placement of all nodes from the log of this program.
import type { AdapterOptions, LoadOptions } from '../../extension/engine/load-options';
import type { NamedTensor } from '../../extension/engine/engine';
import type { PolicyLossOptions } from '../../extension/engine/loss-options';
import type { SamplingOptions } from '../../extension/engine/generation-calls';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { PolicyEngine } from '../../extension/models/policy-engine';

export interface LifeOptions {
  device: LoadOptions['device'];
  modelFolder: string;
  lora: AdapterOptions | null;
  checkpointed: boolean;
}

export interface Life {
  /** Token ids of each generated row. */
  tokens: number[][];
  /** Numeric results by name. */
  numbers: Record<string, ArrayLike<number>>;
}

const vocab = 40; // smaller than every golden model's
const budget = { maxTokens: 120, maxRows: 4 };
const optimizer = { lr: 0.01, betas: [0.9, 0.99] as [number, number], eps: 1e-6, weight_decay: 0.01, grad_clip: 1 };
const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0.01,
  use_kl_loss: true,
  kl_loss_coef: 0.1,
  kl_loss_type: 'abs',
  loss_agg_mode: 'token-mean',
  temperature: 0.8,
};
const sampling: SamplingOptions = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
  max_new_tokens: 10,
  stop_token_ids: [2],
  stop: [],
  max_model_len: 64,
};

export async function engineLife({ device, modelFolder, lora, checkpointed }: LifeOptions): Promise<Life> {
  const engine = new PolicyEngine();
  await engine.load({
    modelFolder,
    adapterFolder: null,
    device,
    threads: 1,
    lora,
    rolloutQuantization: 'none',
    baseQuantization: 'none',
    checkpointed,
    referenceFolder: modelFolder,
    critic: true,
    seed: 5,
    maxPositions: null,
    cacheFolder: '',
  });
  const stream = new RandomStream(9);
  const ids = (n: number): number[] => Array.from({ length: n }, () => stream.integer(vocab));
  const tokens: number[][] = [];
  const numbers: Life['numbers'] = {};

  const prompt = ids(12);
  const turn = async (appended: Record<string, number[]>, changed: Partial<SamplingOptions>): Promise<void> => {
    const requests = Object.entries(appended).map(([row, append], seed) => ({ row, append, seed }));
    const rows = await engine.generate(requests, { ...sampling, ...changed });
    tokens.push(...rows.map(row => row.ids));
    numbers[`log-probs of generation ${tokens.length}`] = rows.flatMap(row => row.logprobs);
  };
  await turn({ a: prompt, b: prompt, c: ids(5) }, {});
  await turn({ a: ids(7), c: ids(1) }, { do_sample: false });
  await turn({ a: ids(2), b: ids(2) }, { top_p: 0.9, top_k: 20 }); // these rows were in different batches before

  const array = (n: number, draw: () => number): Float32Array => Float32Array.from({ length: n }, draw);
  const samples = [8, 20, 20, 33, 5].map((n, i) => {
    const own = Int32Array.from([...(i < 3 ? prompt.slice(0, 9) : []), ...ids(n)]);
    const mask = Uint8Array.from(own, (_, t) => (t > 0 && stream.uniform() < 0.7 ? 1 : 0));
    return {
      ids: own,
      mask,
      old_logprobs: array(own.length, () => -3 + 0.5 * stream.normal()),
      ref_logprobs: array(own.length, () => -3 + 0.5 * stream.normal()),
      advantages: array(own.length, () => stream.normal()),
      weights: array(own.length, () => 0.02),
      old_values: array(own.length, () => 0.1 * stream.normal()),
      returns: array(own.length, () => stream.normal()),
    };
  });
  const score = async (when: string): Promise<void> => {
    for (const which of ['actor', 'reference'] as const) {
      const { logprobs, entropies } = await engine.score(which, samples, budget, 0.8);
      numbers[`${which}'s log-probs ${when}`] = logprobs.flatMap(row => [...row]);
      numbers[`${which}'s entropies ${when}`] = entropies.flatMap(row => [...row]);
    }
    numbers[`values ${when}`] = (await engine.values(samples, budget)).flatMap(row => [...row]);
  };
  await score('at first');
  for (const step of [1, 2]) {
    numbers[`metrics of update ${step}`] = Object.values(await engine.update(samples, budget, loss, optimizer, step));
    const critic = { cliprange_value: 0.3, loss_agg_mode: loss.loss_agg_mode };
    numbers[`critic's metrics ${step}`] = Object.values(await engine.updateCritic(samples, budget, critic, optimizer));
  }
  for (const [step, loss_mode] of [
    [3, 'gspo'],
    [4, 'cispo'],
  ] as const)
    numbers[`metrics of ${loss_mode}'s update`] = Object.values(
      await engine.update(samples, budget, { ...loss, policy_loss: { loss_mode } }, optimizer, step),
    );
  const prompts = [prompt, prompt.slice(0, 9), ids(6)].map(p => Int32Array.from(p));
  const texts = [4, 7, 2].map(n => Int32Array.from(ids(n)));
  numbers['cross-scores'] = (await engine.crossScore(prompts, texts, budget, 0.8)).flatMap(row => [...row]);
  const { buckets } = await engine.analyseGradients([[samples.slice(0, 3)], [samples.slice(3)]], budget, loss, 11);
  numbers["norms of the parts' gradients"] = buckets.flatMap(({ gradients }) => gradients.map(({ norm }) => norm));
  numbers['loss of imitation'] = [await engine.trainSupervised(samples, budget, optimizer, 3)];
  await score('after steps');
  const { actor, critic } = await engine.state();
  Object.assign(numbers, { 'first moments': actor.m, 'second moments': actor.v, 'steps taken': [actor.step] });
  numbers["critic's weights"] = critic!.weights;
  for (const { name, data } of await engine.parameters()) numbers[name] = data satisfies NamedTensor['data'];
  engine.release(['a', 'b', 'c']).catch(() => undefined);
  await turn({ a: prompt, d: ids(3) }, {});
  return { tokens, numbers };
}
