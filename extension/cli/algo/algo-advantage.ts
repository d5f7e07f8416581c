// `ragen algo advantage`: computes the advantages and returns of a batch with one estimator. Estimators have the names
// that RAGEN uses. By default, a row is an episode. If `episode` is given, a row is a turn, and rows with equal values
// of `episode` belong to the same episode. At masked tokens, raw advantages have the values that the original
// implementation computes, and whitened advantages are 0.
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { biLevelAdvantages, nonZeroRewards } from '../../algorithms/bi-level-gae';
import { generalizedAdvantages } from '../../algorithms/gae';
import { arpoAdvantages, brpoAdvantages, grpoAdvantages } from '../../algorithms/grpo';
import { centredScores, discountedReturns } from '../../algorithms/reinforce';
import { remaxAdvantages } from '../../algorithms/remax';
import { opoAdvantages } from '../../algorithms/opo';
import { optimalTokenBaselineAdvantages } from '../../algorithms/optimal-token-baseline';
import { rlooAdvantages } from '../../algorithms/rloo';
import { placeRewards, spreadOverTokens, whitenTokens } from '../../algorithms/token-sequences';
import { turnGae } from '../../algorithms/turn-gae';
import { spreadOverTurns, turnGrpoAdvantages } from '../../algorithms/turn-advantages';
import {
  define,
  ids,
  index,
  maskOf,
  maskRows,
  numbered,
  numbers,
  rows,
  sameLength,
  sameShape,
  shortest,
} from './algo-forms';

const advantageForm = z.object({
  estimator: z.enum([
    'gae',
    'grpo',
    'rloo',
    'opo',
    'tir_optimal_token_baseline',
    'reinforce_plus_plus',
    'reinforce_plus_plus_baseline',
    'remax',
    'brpo',
    'arpo',
  ]),
  baselines: numbers.optional(),
  rewards: rows.optional(),
  scores: numbers.optional(),
  values: rows.optional(),
  logprob: rows.optional(),
  squares: rows.optional(),
  mask: maskRows.optional(),
  group: ids.optional(),
  episode: ids.optional(),
  gamma: z.number().default(1),
  lam: z.number().default(1),
  high_level_gamma: z.number().default(0.95),
  high_level_lam: z.number().optional(),
  turn_value: z.enum(['end', 'start']).default('end'),
  bi_level_gae: z.boolean().default(false),
  turn_gae: z.enum(['off', 'first', 'last']).default('off'),
  turn_ends: z.array(z.array(index)).optional(),
  use_turn_scores: z.boolean().default(false),
  norm_adv_by_std_in_grpo: z.boolean().default(true),
  whiten: z.boolean().default(true),
  compat: z.enum(['none', 'ragen']).default('none'),
});

/** Returns `advantages` and `returns`, each with one row per input row and one number per token. */
export const advantage = define(advantageForm, input => {
  const { estimator } = input;
  const batch = tokenBatch(input);
  const { masks, rewards, values, scores } = batch;
  const grouped = { scores, groups: batch.groups, episodes: batch.episodes };
  const whitened = (raw: Float32Array[]): Float32Array[] => {
    const advantages = raw.map(row => row.slice());
    if (input.whiten) whitenTokens(advantages, masks);
    return advantages;
  };
  const alike = (advantages: Float32Array[]) => ({ advantages, returns: advantages });
  switch (estimator) {
    case 'gae': {
      if (!values) throw new UserError('the key "values" is missing, which gae needs: give the critic’s values');
      const { turn_gae } = input;
      if (turn_gae !== 'off') {
        const over = { gamma: input.high_level_gamma, lam: input.high_level_lam ?? input.lam, value: turn_gae };
        const turns = rewards.map((reward, row) => {
          const turnEnds = input.turn_ends?.[row] ?? nonZeroRewards(reward);
          return turnGae({ rewards: reward, values: values[row], mask: masks[row], turnEnds }, over);
        });
        return answer({
          advantages: whitened(turns.map(row => row.advantages)),
          returns: turns.map(row => row.returns),
        });
      }
      const raw = rewards.map((reward, row) => {
        const sequence = { rewards: reward, values: values[row], mask: masks[row] };
        if (!input.bi_level_gae) return generalizedAdvantages(sequence, input);
        return biLevelAdvantages({ ...sequence, turnEnds: input.turn_ends?.[row] ?? nonZeroRewards(reward) }, input);
      });
      const counts = (row: number, token: number): boolean => !input.bi_level_gae || masks[row][token] === 1;
      const returns = raw.map((line, row) => line.map((a, token) => (counts(row, token) ? a + values[row][token] : 0)));
      return answer({ advantages: whitened(raw), returns });
    }
    case 'grpo':
      if (input.use_turn_scores) return answer(alike(turnWise(input, batch)));
      return answer(alike(spreadOverTokens(grpoAdvantages(required(grouped, estimator), input), masks)));
    case 'rloo':
      return answer(alike(spreadOverTokens(rlooAdvantages(required(grouped, estimator)), masks)));
    case 'opo':
      return answer(alike(spreadOverTokens(opoAdvantages(required(grouped, estimator), masks), masks)));
    case 'tir_optimal_token_baseline': {
      const { logprob, squares } = input;
      if (!logprob || !squares)
        throw new UserError(
          `the key ${JSON.stringify(logprob ? 'squares' : 'logprob')} is missing, which ${estimator} needs: give log-probs and sums of squared probabilities, one per token`,
        );
      const noisy = rewards.map((reward, row) => ({
        ...{ rewards: reward, mask: masks[row] },
        ...{ logprobs: logprob[row], squares: squares[row] },
      }));
      return answer(alike(optimalTokenBaselineAdvantages(noisy, required(grouped, estimator).groups)));
    }
    case 'brpo':
      return answer(alike(spreadOverTokens(brpoAdvantages(grouped, input), masks)));
    case 'arpo':
      return answer(alike(spreadOverTokens(arpoAdvantages(scores), masks)));
    case 'reinforce_plus_plus': {
      const gaps = input.compat === 'ragen' ? 'reset' : 'carry';
      const returns = rewards.map((reward, row) =>
        discountedReturns({ rewards: reward, mask: masks[row] }, input.gamma, gaps),
      );
      return answer({ advantages: whitened(returns), returns });
    }
    case 'remax': {
      if (!input.baselines)
        throw new UserError(
          'the key "baselines" is missing, which remax needs: give the score of the greedy rollout of each row',
        );
      sameLength('rewards', rewards, { baselines: input.baselines });
      const sequences = rewards.map((reward, row) => ({ rewards: reward, mask: masks[row] }));
      return answer({
        advantages: remaxAdvantages(sequences, input.baselines),
        returns: remaxAdvantages(sequences, new Float32Array(rewards.length)),
      });
    }
    case 'reinforce_plus_plus_baseline':
      return answer(alike(whitened(spreadOverTokens(centredScores(required(grouped, estimator)), masks))));
  }
});

/** The input of the advantage estimators. Each array has one entry per row. */
interface TokenBatch {
  masks: Uint8Array[];
  rewards: Float32Array[];
  scores: Float32Array;
  values?: Float32Array[];
  groups?: number[];
  episodes?: number[];
}

type AdvantageCase = z.output<typeof advantageForm>;

/**
 * Converts a case to a batch. If the case has no rewards, each row's score becomes the reward of its last sampled
 * token. If the case has no scores, a row's score is the sum of its rewards.
 */
function tokenBatch(given: AdvantageCase): TokenBatch {
  const { rewards, scores, values, mask, group, episode, turn_ends, logprob, squares } = given;
  const shape = rewards ?? mask ?? values ?? scores?.map(() => [1]);
  if (!shape || (!rewards && !scores))
    throw new UserError('the key "rewards" is missing: give one reward per token, or give "scores"');
  sameShape(rewards ? 'rewards' : mask ? 'mask' : 'values', shape, { values, mask, logprob, squares });
  sameLength('rewards', shape, { scores, group, episode, turn_ends });
  const masks = shape.map((row, i) => maskOf(mask?.[i], row.length));
  turn_ends?.forEach((ends, row) =>
    ends.forEach((end, turn) => {
      if (end < masks[row].length && (turn === 0 || end > ends[turn - 1])) return;
      throw new UserError(
        `turn_ends[${row}][${turn}] is ${end}: use increasing token indexes below ${masks[row].length}`,
      );
    }),
  );
  const padded = masks.map((row, i) => {
    const last = row.lastIndexOf(1);
    return rewards ? Float32Array.from(rewards[i]) : placeRewards(row.length, last < 0 ? [] : [last], [scores![i]]);
  });
  return {
    masks,
    rewards: padded,
    scores: Float32Array.from(scores ?? padded.map(row => row.reduce((sum, reward) => sum + reward, 0))),
    values: values?.map(row => Float32Array.from(row)),
    groups: group && numbered(group),
    episodes: episode && numbered(episode),
  };
}

/** Computes turn-wise GRPO. The reward of a turn is the sum of its tokens' rewards. */
function turnWise(input: AdvantageCase, { rewards, masks, groups }: TokenBatch): Float32Array[] {
  const { turn_ends: ends } = input;
  if (!ends)
    throw new UserError(
      'the key "turn_ends" is missing, but use_turn_scores is true: give the index of the last token of each turn',
    );
  const turns = rewards.map((row, i) =>
    ends[i].map((end, turn) =>
      row.slice(turn === 0 ? 0 : ends[i][turn - 1] + 1, end + 1).reduce((sum, r) => sum + r, 0),
    ),
  );
  const { groups: known } = required({ groups }, 'grpo');
  return turnGrpoAdvantages({ rewards: turns, groups: known }, input).map((row, i) =>
    spreadOverTurns(row, ends[i], masks[i]),
  );
}

function required<T extends { groups?: number[] }>(batch: T, estimator: string): T & { groups: number[] } {
  const { groups } = batch;
  if (!groups) throw new UserError(`the key "group" is missing, which ${estimator} needs: give the group of each row`);
  return { ...batch, groups };
}

const answer = (found: { advantages: Float32Array[]; returns: Float32Array[] }) => ({
  advantages: found.advantages.map(row => Array.from(row, shortest)),
  returns: found.returns.map(row => Array.from(row, shortest)),
});
