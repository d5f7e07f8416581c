// Measures what a server does with a loss, on a model made for it and unloaded afterwards: how it reduces token losses,
// and whether it reports gradient norms. A new adapter's gradient depends only on its data, and the norm of a gradient
// scales with its loss, so three datums decide: one sample, the same sample twice, and the sample with its weights
// doubled.
import { UserError } from '../../common/user-error';
import { unwatched } from '../../engine/work-units';
import type { ServerModel } from './server-model';
import type { Reduction } from './surrogate';
import { datumOf, type Datum } from './tinker-wire';

/** What a probe has found. */
export interface ServerFacts {
  reduction: Reduction;
  /** Name of the gradient norm among the metrics of an optimizer step. */
  gradientNorm: string;
}

/** Relative deviation within which a measured ratio counts as 1 or 2. */
const tolerance = 0.02;
/** The token ids of the probe's sample, which every vocabulary has. */
const ids = [1, 2, 3, 4, 5, 6, 7, 8];

/** An optimizer step that changes nothing, since its learning rate is 0. */
const noStep = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 0 };

/**
 * Probes a server with a model that nothing else uses and that may be unloaded afterwards.
 * @throws UserError if the server reports no gradient norm, or reduces losses in another way
 */
export async function probeServer(model: Pick<ServerModel, 'step'>, url: string): Promise<ServerFacts> {
  const norm = async (...data: Datum[]): Promise<[string, number]> => {
    const metrics = await model.step(data, noStep, unwatched);
    const found = Object.entries(metrics).find(([name]) => /(^|[/:])grad_?norm$/.test(name));
    if (!found || !(found[1] > 0))
      throw new UserError(
        `engine: ${url} does not report the gradient norm of an optimizer step, which shows whether its losses are sums or means: use a server that reports this norm`,
      );
    return found;
  };
  const sample = (weight: number): Datum => {
    const each = (value: number): number[] => ids.map((_, i) => (i === 0 ? 0 : value));
    return datumOf(ids, each(weight), each(-5), each(0.01));
  };
  const [gradientNorm, one] = await norm(sample(1));
  const [, twice] = await norm(sample(1), sample(1));
  const [, doubled] = await norm(sample(2));
  return {
    gradientNorm,
    reduction: { samples: kindOf('samples', twice / one, url), tokens: kindOf('weights', doubled / one, url) },
  };
}

function kindOf(what: string, ratio: number, url: string): 'sum' | 'mean' {
  if (Math.abs(ratio - 2) < 2 * tolerance) return 'sum';
  if (Math.abs(ratio - 1) < tolerance) return 'mean';
  throw new UserError(
    `engine: ${url} multiplies the gradient by ${ratio.toPrecision(4)} when the ${what} double, so its losses are neither sums nor means: use a server whose losses are one of the two`,
  );
}
