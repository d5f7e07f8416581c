// Scores the tokens of a stored episode under a checkpoint: policy, reference policy and critic. The stored ids are
// scored without re-tokenising. In a windowed context mode, each training sample is scored as a separate context, as
// the model saw it.
import type { Rescored, RescoredToken, RescoreRequest } from '../../protocol/inspection';
import type { Episode } from '../../run-data/episode';
import { tokenPieces } from '../../models/tokenizer/token-pieces';
import { passBudget } from '../run/pass-budget';
import type { BareSample } from '../../engine/training-samples';
import type { InspectedRun } from './inspected-run';
import type { InspectionModel } from './inspection-model';

/** Number of most likely tokens reported per position. */
const topCount = 5;

type Sample = BareSample;

/**
 * Returns, for each scored token of an episode, the token's log-prob and rank, and the entropy and the most likely
 * tokens at the token's position.
 * @throws UserError if the checkpoint's weights give non-finite numbers
 */
export async function rescored(
  run: InspectedRun,
  episode: Episode,
  { all }: Pick<RescoreRequest, 'all'>,
  { engine, checkpoint, hasReference, hasCritic }: InspectionModel,
): Promise<Rescored> {
  const { rollout } = run.config.actor_rollout_ref;
  const { temperature } = episode.mode === 'val' ? rollout.val_kwargs : rollout;
  const samples = samplesOf(episode, all ?? false);
  const budget = passBudget(run.config, rollout.log_prob_micro_batch_size_per_gpu, samples.length);
  const inspected = await engine.inspect(samples, budget, temperature, topCount);
  const reference = hasReference ? (await engine.score('reference', samples, budget, temperature)).logprobs : null;
  const critic = hasCritic ? await valuesOf(engine, samples, budget) : null;

  const tokenizer = await run.tokenizer();
  const texts = tokenPieces(tokenizer, episode.tokens.ids);
  const alone = (id: number): string => tokenizer.decode([id], { special: true });
  const tokens: RescoredToken[] = [];
  samples.forEach(({ ids, mask }, s) => {
    const { logprobs, entropies, ranks, top } = inspected[s];
    ids.forEach((id, i) => {
      const at = tokens.length;
      const scored = mask[i] === 1;
      const logprobOf = (x: number | undefined): number | null => (scored && x !== undefined ? shortest(x) : null);
      tokens.push({
        id,
        text: texts[at],
        sampled: episode.tokens.mask[at] === 1,
        logprob: logprobOf(logprobs[i]),
        entropy: logprobOf(entropies[i]),
        rank: logprobOf(ranks[i]),
        top: scored
          ? top.map(each => ({ id: each.ids[i], text: alone(each.ids[i]), logprob: shortest(each.logprobs[i]) }))
          : [],
        reference: logprobOf(reference?.[s][i]),
        value: logprobOf(critic?.[s][i]),
      });
    });
  });
  return { checkpoint, temperature, hasReference, hasCritic, tokens };
}

/**
 * Returns the contexts that the model saw, with a mask over the tokens to score. The first token of a context has no
 * predecessor and is never scored.
 */
function samplesOf({ tokens: { ids, mask, starts = [0], pictures = [] } }: Episode, all: boolean): Sample[] {
  return starts.map((from, i) => {
    const to = starts[i + 1] ?? ids.length;
    const own = Uint8Array.from(mask.slice(from, to), bit => (all ? 1 : bit));
    own.fill(0, 0, 1);
    const shows = pictures
      .filter(({ at }) => at >= from && at < to)
      .map(({ at, picture }) => ({ at: at - from, picture }));
    return { ids: Int32Array.from(ids.slice(from, to)), mask: own, ...(shows.length > 0 && { shows }) };
  });
}

/**
 * Returns the critic's values for the tokens of each sample. A sample without tokens to score gets zeros, because the
 * critic does not accept such samples.
 */
async function valuesOf(
  engine: InspectionModel['engine'],
  samples: readonly Sample[],
  budget: Parameters<InspectionModel['engine']['values']>[1],
): Promise<Float32Array[]> {
  const some = samples.filter(({ mask }) => mask.includes(1));
  const found = await engine.values(some, budget);
  const values = new Map(some.map((sample, i) => [sample, found[i]]));
  return samples.map(sample => values.get(sample) ?? new Float32Array(sample.ids.length));
}

/** Rounds to nine significant digits, which identify a float32. */
const shortest = (x: number): number => Number(x.toPrecision(9));
