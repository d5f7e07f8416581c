// Measures a server's rates for a plan. For this purpose, a separate model is loaded on the server. The weights of this
// model stay unchanged, and the model is unloaded at the end. Each kind of work is done once before it is measured,
// because some servers compile code for each new size.
import type { RunConfig } from '../config/schema';
import type { SamplingOptions } from '../../engine/generation-calls';
import type { RemoteEngine } from '../../engine/remote-engine';
import { UserError } from '../../common/user-error';
import { RandomStream } from '../../engine/sampling/random-stream';
import { median } from '../../common/mean-estimate';
import { samplingSlots } from '../../models/tinker/request-slots';
import { readTextShape, readTokenizer } from '../../models/weights/model-folder';
import { openEngine } from '../run/run-engine';
import { weightsLoaded } from './memory-input';
import type { ServerRates } from './remote-plan';

/** Sizes of the measured work. */
const most = { rows: 64, sampled: 32, samples: 16, length: 256, prompt: 32 };
/** Seconds for which the server may be unavailable. */
const outage_s = 5;
/** An optimizer step that changes nothing. */
const noStep = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
const budget = { maxTokens: Infinity, maxRows: Infinity };
const ignore = (): void => undefined;

/**
 * Returns the rates of the server that a configuration names.
 * @param modelFolder folder with the tokenizer and config.json
 * @throws UserError if the server cannot be used
 */
export async function measureRates(config: RunConfig, modelFolder: string, workspace: string): Promise<ServerRates> {
  const { workbench, actor_rollout_ref } = config;
  const tokenizer = readTokenizer(modelFolder);
  const quick = { workbench: { ...workbench, engine_outage_s: outage_s } };
  const engine = await openEngine(quick, modelFolder, tokenizer, { event: ignore }, { request: () => ignore }, false);
  try {
    await engine.load({
      ...weightsLoaded(config, modelFolder, workspace, undefined),
      referenceFolder: null,
      device: workbench.device,
      threads: workbench.threads,
      rolloutQuantization: 'none',
      baseQuantization: 'none',
      checkpointed: false,
      critic: false,
      seed: 1,
      maxPositions: actor_rollout_ref.rollout.max_model_len,
      cacheFolder: '',
    });
    return await ratesOf(engine, readTextShape(modelFolder), samplingSlots(workbench.engine_requests));
  } finally {
    await engine.stop();
  }
}

async function ratesOf(
  engine: RemoteEngine,
  { vocabSize, maxPositions }: ReturnType<typeof readTextShape>,
  slots: number,
): Promise<ServerRates> {
  const stream = new RandomStream(1);
  const ids = (count: number): number[] => Array.from({ length: count }, () => stream.integer(vocabSize));
  const rows = Math.min(most.rows, slots);
  const sampled = Math.min(most.sampled, maxPositions >> 1);
  const length = Math.min(most.length, maxPositions);
  let calls = 0;
  const sample = async (count: number, tokens: number): Promise<{ seconds: number; tokens: number }> => {
    const asked = Array.from({ length: count }, (_, row) => ({
      row: `${calls}.${row}`,
      append: ids(Math.min(most.prompt, maxPositions - sampled)),
      seed: row,
    }));
    calls++;
    const start = performance.now();
    const answers = await engine.generate(asked, samplingOf(tokens, maxPositions));
    const seconds = (performance.now() - start) / 1000;
    await engine.release(asked.map(({ row }) => row));
    return { seconds, tokens: answers.reduce((sum, answer) => sum + answer.ids.length, 0) };
  };
  const trips: number[] = [];
  for (let k = 0; k < 4; k++) trips.push((await sample(1, 1)).seconds);
  await sample(rows, sampled);
  const rollout = await sample(rows, sampled);

  const samples = Array.from({ length: most.samples }, () => ({
    ids: Int32Array.from(ids(length)),
    mask: new Uint8Array(length).fill(1, 1),
  }));
  const timed = async (work: () => Promise<unknown>): Promise<number> => {
    const start = performance.now();
    await work();
    return (performance.now() - start) / 1000;
  };
  const score = () => timed(() => engine.score('actor', samples, budget, 1));
  // The engine reuses the log-probs from `score`. If `score` runs first, `train` therefore measures only the pass with
  // gradients.
  const train = () => timed(() => engine.trainSupervised(samples, budget, noStep, 0));
  await score();
  const scoring = await score();
  await train();
  await score();
  const training = await train();
  const tokens = most.samples * length;
  const rates = {
    round_trip_s: median(trips.slice(1)),
    sampled_per_s: rollout.tokens / rollout.seconds,
    scored_per_s: tokens / scoring,
    trained_per_s: tokens / training,
  };
  if (!Object.values(rates).every(rate => rate > 0 && Number.isFinite(rate)))
    throw new UserError('plan: the server sampled nothing, so its rates are not known: give them as options');
  return rates;
}

const samplingOf = (max_new_tokens: number, max_model_len: number): SamplingOptions => ({
  max_new_tokens,
  max_model_len,
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
  stop: [],
  stop_token_ids: [],
});
