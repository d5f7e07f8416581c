// Measures what a server does, on a model made for it and unloaded afterwards: how it reduces losses over tokens and
// samples, whether it reports gradient norms, and whether a published version stays apart from the weights in training.
// A new adapter's gradient depends only on its data, and its norm scales with the loss. All datums have the same two
// tokens with an advantage, so their gradients are parallel, and four norms decide: of one sample, of the sample twice,
// of the sample with doubled weights, and of the sample with one of fewer weights.
import { UserError } from '../../common/user-error';
import { unwatched } from '../../engine/work-units';
import type { ServerModel } from './server-model';
import type { Reduction } from './surrogate';
import { hasLogprobs } from './tinker-rows';
import { datumOf, type Datum, type SampledSequence } from './tinker-wire';

/** What a probe has found. */
export interface ServerFacts {
  reduction: Reduction;
  /** Name of the gradient norm among the metrics of an optimizer step. */
  gradientNorm: string;
  /**
   * Whether a published version is not changed by later optimizer steps, so that it can be sampled while the next step
   * is trained.
   */
  keepsVersions: boolean;
}

/** What the probe uses of a model. */
export type ProbedModel = Pick<ServerModel, 'step' | 'publish' | 'logprobs'>;

/** Relative deviation within which a measured ratio counts as the expected one. */
const tolerance = 0.02;
/** The token ids of the probe's samples, which every vocabulary has. */
const ids = [1, 2, 3, 4, 5, 6, 7, 8, 9];
/** Number of tokens with an advantage, and the two numbers of tokens with a weight. */
const [active, few, many] = [2, 2, 8];
/** Deviation of log-probs within which they count as equal, and above which they count as moved. */
const [equalWithin, movedAbove] = [1e-3, 5e-3];

/** An optimizer step that changes nothing, since its learning rate is 0. */
const noStep = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 0 };

/**
 * Probes a server with a new model that nothing else uses and that must be unloaded afterwards.
 * @param draw samples a response to a prompt from a published version, always with the same seed
 * @throws UserError if the server reports no gradient norm, or reduces losses in another way
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
  await norm(sample(many)); // the first step of a server may differ
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

/** A sample whose first `weighted` predicted tokens have a weight. */
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

/** Checks the gradient of two samples of unequal length, relative to that of the longer one. */
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
 * Whether a published version samples the same before and after an optimizer step that moves the log-probs of its
 * sample.
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

/** The largest deviation of two arrays of equal length. */
const farthest = (a: ArrayLike<number | null>, b: ArrayLike<number | null>): number =>
  Array.from(a).reduce<number>((most, value, i) => Math.max(most, Math.abs((value ?? NaN) - (b[i] ?? NaN))), 0);
