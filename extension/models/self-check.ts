// Checks whether a provider computes the same results as the CPU, because faulty kernels may compute wrong gradients
// without an error. A small decoder runs one policy update and samples two turns, on the provider and on the CPU. The
// decoder has all features of real models: grouped heads, query and key norms, biases and adapters. The update has a
// shared prefix and several passes. Loss, gradients of all parameters and sampled tokens are compared, and for a model that
// reads pictures also what shows them (pictured-check.ts). A chain of matmuls is timed on the provider and on the CPU,
// because a software emulation of a GPU is slower than the CPU.
import { fork } from 'node:child_process';
import { appendAll } from '../common/lists';
import { programEnvironment, variablesFor } from '../../envs/api/program-environment';
import type { DeviceCheck } from '../engine/session/devices';
import { dispose } from '../engine/session/device-tensor';
import type { OptimizerOptions, PolicyLossOptions } from '../engine/loss-options';
import type { SamplingOptions } from '../engine/generation-calls';
import type { WeightedSample } from '../engine/training-samples';
import { Graph } from '../engine/graph/graph';
import type { FloatType } from '../engine/graph/graph';
import { matmul } from '../engine/graph/layer-ops';
import { sumAll } from '../engine/graph/ops';
import { RandomStream } from '../engine/sampling/random-stream';
import { Session, float32, loweringOf } from '../engine/session/session';
import type { Provider, SessionOptions } from '../engine/session/session';
import { Transfer } from '../engine/session/transfer';
import { installation } from '../node/installation';
import { parameterSpecs } from './decoder/decoder-config';
import type { DecoderConfig } from './decoder/decoder-config';
import { DeviceParameters, openBank } from './weights/device-parameters';
import { Generator } from './generation/generator';
import { cacheLocation } from './generation/generator-options';
import { computePictured, randomWeights } from './pictured-check';
import type { PictureUse } from './pictured-check';
import { loraModules, loraSpecs } from './adapters/lora';
import { trainedNetwork } from './decoder/networks';
import { Policy } from './policy';
import type { Network } from './graphs/policy-graphs';
import type { Weights } from './weights/weights';

/**
 * Maximum relative error of the loss terms and of a parameter's gradient. In float32, another order of summation causes
 * errors of about 1e-6. float16 matmuls normally cause errors of a few thousandths.
 */
const mostError: Record<FloatType, number> = { float32: 1e-2, float16: 5e-2 };

const config: DecoderConfig = {
  family: 'qwen3',
  vocabSize: 97,
  hiddenSize: 48,
  intermediateSize: 80,
  layers: 2,
  heads: 4,
  kvHeads: 2,
  headSize: 16,
  maxPositions: 64,
  normEps: 1e-6,
  ropeTheta: 10_000,
  ropeScaling: { rope_type: 'default' },
  tiedHead: true,
  qkvBias: true,
  outputBias: false,
  mlpBias: false,
  qkNorm: true,
};
const lora = { rank: 4, alpha: 8, dropout: 0, targets: 'all-linear' };
const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0.01,
  use_kl_loss: true,
  kl_loss_coef: 0.1,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 0.9,
};
const optimizer: OptimizerOptions = { lr: 1e-3, betas: [0.9, 0.99], eps: 1e-3, weight_decay: 0.01, grad_clip: 1 };
const sampling: SamplingOptions = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
  max_new_tokens: 6,
  stop_token_ids: [3],
  stop: [],
  max_model_len: 60,
};

/** Results that the small decoder gives on one provider. */
export interface ComputedResults {
  /** Metrics of the update by name. */
  loss: Record<string, number>;
  gradient: Weights;
  /** Sampled ids of all rows in the first turn, followed by the sampled ids of all rows in the second turn. */
  tokens: number[];
  /** Other results, by what messages call them. */
  values?: Record<string, Float32Array>;
}

/** What the self-check computes, and what for. */
export interface SelfCheckOptions {
  precision?: FloatType;
  /** How the model shows pictures; without it, the model reads text only. */
  shown?: PictureUse | undefined;
  /** Runs the computations that are compared. */
  compute?: typeof computeSmall;
  computeShown?: typeof computeShown;
}

/**
 * Compares `provider` at a precision with the CPU in float32. A provider that cannot run fails the check, and so does a
 * provider that cannot do what the model needs.
 * @param threads CPU threads; 0 for all cores
 */
export async function selfCheck(
  provider: Provider,
  threads: number,
  {
    precision = 'float32',
    shown,
    compute = computeSmall,
    computeShown: computePictures = computeShown,
  }: SelfCheckOptions = {},
): Promise<DeviceCheck> {
  if (shown?.generates && cacheLocation({ provider }) === 'device')
    return {
      passed: false,
      faster: false,
      about: 'it cannot answer prompts that show pictures, because it keeps keys and values on the device',
    };
  try {
    const expected = await compute({ provider: 'cpu', threads }, 'float32');
    const found = await compute({ provider, threads }, precision);
    const text = compared(found, expected, precision);
    const pictured = shown && {
      expected: await computePictures(shown, { provider: 'cpu', threads }, 'float32'),
      found: await computePictures(shown, { provider, threads }, precision),
    };
    const seen = pictured && compared(pictured.found, pictured.expected, precision);
    const differs = text.differs ?? seen?.differs;
    const gradient = Math.max(text.gradient, seen?.gradient ?? 0);
    if (differs) return { passed: false, faster: false, about: differs };
    const [own, cpu] = [await productTime({ provider, threads }), await productTime({ provider: 'cpu', threads })];
    const faster = own < cpu;
    const same = precision === 'float32' ? 'loss, gradients and tokens' : 'loss and gradients';
    const about = `${same}${shown ? ', also with pictures,' : ''} match the CPU's (gradients within ${formatted(gradient)}), and matrix products take ${own.toFixed(1)} ms (CPU: ${cpu.toFixed(1)} ms)`;
    return { passed: true, faster, about };
  } catch (error) {
    return {
      passed: false,
      faster: false,
      about: `it does not run on this machine (${firstSentence(error as Error)})`,
    };
  }
}

/**
 * Returns the first difference as a sentence fragment (null without difference), and the largest relative error of a
 * parameter's gradient.
 */
export function compared(
  found: ComputedResults,
  expected: ComputedResults,
  precision: FloatType = 'float32',
): { differs: string | null; gradient: number } {
  const limit = mostError[precision];
  const most = `at most ${formatted(limit)}`;
  for (const [name, number] of Object.entries(expected.loss)) {
    const error = Math.abs(found.loss[name] - number) / Math.max(1e-3, Math.abs(number));
    if (!(error <= limit))
      return { differs: `its ${name} differs from the CPU's by ${formatted(error)} (${most})`, gradient: NaN };
  }
  for (const [name, values] of Object.entries(expected.values ?? {})) {
    const error = relativeError(found.values?.[name] ?? new Float32Array(values.length).fill(NaN), values);
    if (!(error <= limit))
      return { differs: `its ${name} differ from the CPU's by ${formatted(error)} (${most})`, gradient: NaN };
  }
  let worst = { name: '', error: 0 };
  for (const { name } of expected.gradient.specs) {
    const error = relativeError(found.gradient.view(name), expected.gradient.view(name));
    if (!(error <= worst.error)) worst = { name, error };
    if (Number.isNaN(error)) break;
  }
  if (!(worst.error <= limit))
    return {
      differs: `its gradients differ from the CPU's by ${formatted(worst.error)} (${most}; the largest difference is in ${worst.name})`,
      gradient: worst.error,
    };
  if (precision === 'float16') return { differs: null, gradient: worst.error }; // rounding may change tokens
  const at = expected.tokens.findIndex((token, i) => found.tokens[i] !== token);
  if (at >= 0)
    return {
      differs: `it samples different tokens than the CPU from the same random numbers (from token ${at + 1} on)`,
      gradient: worst.error,
    };
  return { differs: null, gradient: worst.error };
}

/** Encodes, scores and trains with pictures as a model of the given use does. */
export async function computeShown(
  use: PictureUse,
  options: SessionOptions,
  products: FloatType = 'float32',
): Promise<ComputedResults> {
  return { ...(await computePictured(use, { config, loss, optimizer }, options, products)), tokens: [] };
}

/** Runs one update and samples two turns with the small decoder. */
export async function computeSmall(options: SessionOptions, products: FloatType = 'float32'): Promise<ComputedResults> {
  const network = smallNetwork(products);
  const stream = new RandomStream(17);
  const bank = await openBank(randomWeights(network.plan.specs, stream), options);
  const policy = new Policy(network, bank, options);
  const generator = new Generator(network, bank, options);
  const prompt = ids(stream, 9);
  const rows = ['a', 'b', 'c'];
  const tokens: number[] = [];
  for (const turn of [0, 1]) {
    const requests = rows.map((row, i) => ({
      row,
      append: turn === 0 && i < 2 ? prompt : ids(stream, 3 + i),
      seed: 10 * turn + i,
    }));
    appendAll(
      tokens,
      (await generator.generate(requests, sampling)).flatMap(row => row.ids),
    );
  }
  await generator.release(rows);
  const metrics = await policy.update(randomSamples(stream), { maxTokens: 48, maxRows: 4 }, loss, optimizer);
  const gradient = await bank.readGradient();
  if (bank instanceof DeviceParameters) await bank.release();
  const { pg_loss, kl_loss, entropy, grad_norm } = metrics;
  return { loss: { pg_loss, kl_loss, entropy, grad_norm }, gradient, tokens };
}

/**
 * Returns the decoder with adapters. All its parameters are trained, so that one graph computes gradients of layers
 * with and without adapters.
 */
function smallNetwork(products: FloatType): Network {
  const { plan } = trainedNetwork(config, [...parameterSpecs(config), ...loraSpecs(config, lora)]);
  const adapter = { ...lora, modules: new Set(loraModules(config, lora.targets)) };
  return { config, plan: { ...plan, adapter, products } };
}

const ids = (stream: RandomStream, n: number): number[] =>
  Array.from({ length: n }, () => 4 + stream.integer(config.vocabSize - 4));

/** Returns samples, two of which share a prefix. */
function randomSamples(stream: RandomStream): WeightedSample[] {
  const prefix = ids(stream, 10);
  return [8, 13, 21, 17].map((n, i) => {
    const own = Int32Array.from([...(i < 2 ? prefix : []), ...ids(stream, n)]);
    const vector = (draw: () => number): Float32Array => Float32Array.from(own, draw);
    return {
      ids: own,
      mask: Uint8Array.from(own, (_, t) => (t > 0 && stream.uniform() < 0.8 ? 1 : 0)),
      old_logprobs: vector(() => -4.5 + 0.5 * stream.normal()),
      ref_logprobs: vector(() => -4.5 + 0.5 * stream.normal()),
      advantages: vector(() => stream.normal()),
      weights: vector(() => 0.02),
    };
  });
}

const [rows, width, products] = [256, 1024, 4];

/** Returns the milliseconds for a chain of matmuls with about a billion multiplications: the minimum of three runs. */
async function productTime(options: SessionOptions): Promise<number> {
  const g = new Graph('products', loweringOf(options));
  const weight = g.input('w', 'float32', [width, width]);
  let x = g.input('x', 'float32', [rows, width]);
  for (let i = 0; i < products; i++) x = matmul(g, x, weight);
  g.output('sum', sumAll(g, x));
  const session = await Session.create(g, options);
  const transfer = new Transfer(options);
  const matrix = (n: number): ReturnType<typeof float32> => float32(new Float32Array(n * width).fill(0.01), [n, width]);
  const feeds = { x: await transfer.upload(matrix(rows)), w: await transfer.upload(matrix(width)) };
  let best = Infinity;
  for (let i = 0; i < 4; i++) {
    const start = performance.now();
    await session.run(feeds);
    if (i > 0) best = Math.min(best, performance.now() - start); // the first run includes compilation
  }
  dispose(Object.values(feeds));
  await transfer.release();
  await session.release();
  return best;
}

/** Time limit of a provider's check in milliseconds; most of the time is shader compilation. */
const timeoutMs = 120_000;

/**
 * Runs the check in a separate process, so that a driver that crashes or hangs does not affect the run. Used for
 * providers that the user did not request explicitly.
 */
export function selfCheckApart(
  provider: Provider,
  threads: number,
  { shown, entry = installation.engineWorker }: Pick<SelfCheckOptions, 'shown'> & { entry?: string } = {},
): Promise<DeviceCheck> {
  return new Promise(resolve => {
    const env = programEnvironment([...variablesFor.node, ...variablesFor.devices]);
    const child = fork(entry, [provider, String(threads), ...(shown ? [JSON.stringify(shown)] : [])], {
      stdio: 'ignore',
      env,
    });
    const failed = (about: string): void => resolve({ passed: false, faster: false, about });
    const timer = setTimeout(() => {
      failed(`its check did not finish within ${timeoutMs / 1000} s`);
      child.kill('SIGKILL');
    }, timeoutMs);
    child.on('message', (checked: DeviceCheck) => resolve(checked));
    child.on('error', error => failed(`it could not be tested (${firstSentence(error)})`));
    child.on('exit', (code, signal) => {
      clearTimeout(timer);
      failed(`it crashed the process that tested it (${signal ?? `code ${code}`})`);
    });
  });
}

/** Returns ‖found − expected‖ / ‖expected‖. The denominator is at least 1e-4, because gradients may be near zero. */
function relativeError(found: Float32Array, expected: Float32Array): number {
  let [difference, norm] = [0, 0];
  for (let i = 0; i < expected.length; i++) {
    difference += (found[i] - expected[i]) ** 2;
    norm += expected[i] ** 2;
  }
  return Math.sqrt(difference) / Math.max(1e-4, Math.sqrt(norm));
}

const formatted = (error: number): string => error.toExponential(1);

/** Returns onnxruntime's message as one line, without the source location. */
const firstSentence = ({ message }: Error): string =>
  message
    .replace(/^\/\S+ [\s\S]* was false\. /, '')
    .split('\n')[0]
    .trim();
