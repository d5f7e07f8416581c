// Measures three properties of a server, with a model that is used for nothing else: whether the server sums or
// averages losses over tokens and samples, under which name it reports gradient norms, and whether a published version
// stays unchanged while training continues. To find out how the server reduces losses, the probe compares four gradient
// norms of a new adapter. These are the norms for one sample, for the same sample sent twice, for the sample with
// doubled token weights, and for the sample together with a sample that has fewer weighted tokens. In all samples, the
// same two tokens have an advantage, so all gradients are parallel. The ratios of their norms therefore show how the
// server reduces losses.
import { UserError } from '../../common/user-error';
import { unwatched } from '../../engine/work-units';
import type { ServerModel } from './server-model';
import type { Reduction } from './surrogate';
import { hasLogprobs } from './tinker-rows';
import { datumOf, type Datum, type SampledSequence } from './tinker-wire';

/** The properties of a server that the probe has measured. */
export interface ServerFacts {
  reduction: Reduction;
  /** Name under which the server reports the gradient norm among the metrics of an optimizer step. */
  gradientNorm: string;
  /**
   * True if later optimizer steps do not change a published version. Rows can then be sampled from the version while
   * the next step is trained.
   */
  keepsVersions: boolean;
}

/** The methods of a model that the probe calls. */
export type ProbedModel = Pick<ServerModel, 'step' | 'publish' | 'logprobs'>;

/** Maximum relative deviation of a measured ratio from the expected ratio. */
const tolerance = 0.02;
/** The token ids of the probe's samples. Every vocabulary contains these ids. */
const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/**
 * Number of tokens with an advantage, which is the same in every sample; number of weighted tokens in the shorter
 * sample; and number of weighted tokens in the longer sample.
 */
const [active, few, many] = [2, 2, 8];
/**
 * Log-probs that differ by less than the first number are considered equal. Log-probs that differ by more than the
 * second number are considered changed.
 */
const [equalWithin, movedAbove] = [1e-3, 5e-3];

/** An optimizer step that changes nothing, since its learning rate is 0. */
const noStep = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 0 };

/**
 * Probes a server. `model` must be new and used for nothing else. The caller must unload it afterwards.
 * @param draw samples a response to a prompt from a published version, always with the same seed
 * @throws UserError if the server reports no gradient norm, or if it reduces losses in a way that this engine does not
 * support
 */
export async function probeServer(
  model: ProbedModel,
  draw: (session: string, prompt: number[]) => Promise<SampledSequence>,
  url: string,
): Promise<ServerFacts> {
  const norm = async (...data: Datum[]): Promise<[string, number]> => {
    const metrics = await model.step(data, noStep, unwatched);
    const found = Object.entries(metrics).find(([name]) => /(^|[/:])grad_?norm$/.test(name));
    if (!found || !(found[1] > 0))
      throw new UserError(
        `engine: ${url} does not report the gradient norm of an optimizer step, which shows whether its losses are sums or means: use a server that reports this norm`,
      );
    return found;
  };
  await norm(sample(many)); // not used, because the norm of the first step may differ
  const [gradientNorm, one] = await norm(sample(many));
  const [, twice] = await norm(sample(many), sample(many));
  const [, doubled] = await norm(sample(many, 2));
  const [, uneven] = await norm(sample(many), sample(few));
  const reduction = {
    samples: kindOf('samples', twice / one, url),
    tokens: kindOf('weights', doubled / one, url),
  };
  checkUneven(reduction, uneven / one, url);
  return { gradientNorm, reduction, keepsVersions: await keepsVersions(model, draw) };
}

/** Returns a sample in which the first `weighted` predicted tokens have the weight `weight`. */
function sample(weighted: number, weight = 1): Datum {
  const first = (count: number, value: number): number[] => ids.map((_, i) => (i > 0 && i <= count ? value : 0));
  return datumOf(ids, first(weighted, weight), { logprobs: first(weighted, -5), advantages: first(active, 0.01) });
}

function kindOf(what: string, ratio: number, url: string): 'sum' | 'mean' {
  if (isAbout(ratio, 2)) return 'sum';
  if (isAbout(ratio, 1)) return 'mean';
  throw new UserError(
    `engine: the gradient of ${url} grows by the factor ${ratio.toPrecision(4)} when the ${what} are doubled (2 for a sum, 1 for a mean): use a server that adds or averages its losses`,
  );
}

/**
 * Checks the gradient norm for a batch of two samples with different numbers of weighted tokens. `ratio` is this norm
 * divided by the norm for the longer sample alone.
 */
function checkUneven({ tokens, samples }: Reduction, ratio: number, url: string): void {
  const expected = (tokens === 'mean' ? 1 + many / few : 2) / (samples === 'mean' ? 2 : 1);
  if (isAbout(ratio, expected)) return;
  const found = isAbout(ratio, (2 * many) / (many + few))
    ? 'its losses are a mean over the tokens of all samples'
    : `samples of unequal length multiply the gradient by ${ratio.toPrecision(4)}, not by ${expected}`;
  throw new UserError(
    `engine: ${url} cannot be used, because ${found}: use a server whose losses are sums, or means over a sample's tokens`,
  );
}

const isAbout = (ratio: number, expected: number): boolean => Math.abs(ratio / expected - 1) < tolerance;

/**
 * Returns whether an optimizer step leaves a published version unchanged. Samples a response from the version, makes an
 * optimizer step that changes the response's log-probs, and samples from the version again with the same seed.
 */
async function keepsVersions(
  model: ProbedModel,
  draw: (session: string, prompt: number[]) => Promise<SampledSequence>,
): Promise<boolean> {
  const prompt = ids.slice(0, 4);
  const session = await model.publish(0);
  const before = await draw(session, prompt);
  const all = [...prompt, ...before.tokens];
  const mask = all.map((_, i) => Number(i >= prompt.length));
  const scored = { ids: Int32Array.from(all), mask: Uint8Array.from(mask) };
  const [start] = await model.logprobs([scored], unwatched);
  const push = datumOf(all, mask, { logprobs: start, advantages: mask });
  await model.step([push], { ...noStep, lr: 0.05 }, unwatched);
  const [moved] = await model.logprobs([scored], unwatched);
  const after = await draw(session, prompt);
  return (
    farthest(start, moved) > movedAbove &&
    hasLogprobs(before) &&
    after.tokens.join() === before.tokens.join() &&
    farthest(before.logprobs ?? [NaN], after.logprobs ?? [NaN]) < equalWithin
  );
}

/** Returns the largest absolute difference between entries of `a` and `b` with the same index. */
const farthest = (a: ArrayLike<number | null>, b: ArrayLike<number | null>): number =>
  Array.from(a).reduce<number>((most, value, i) => Math.max(most, Math.abs((value ?? NaN) - (b[i] ?? NaN))), 0);
