// The built-in advantage estimators by name, in the interface that plug-ins implement (envs/api/plugins/estimator.ts).
// `gae_by_turn` is used instead of `gae` if `bi_level_gae` is true, `gae_of_turns` with `workbench.turn_gae`, and
// `grpo_by_turn` instead of `grpo` if `use_turn_scores` is true. Only the three forms of `gae` use the critic. The
// functions are in algorithms/.
import type { Estimator, TokenSequence } from '../../../envs/api/plugins/estimator';
import { biLevelGaeAdvantages, nonZeroRewards } from '../../algorithms/bi-level-gae';
import { arpoAdvantages, brpoAdvantages, grpoAdvantages } from '../../algorithms/grpo';
import { maskedGaeAdvantages } from '../../algorithms/masked-gae';
import { opoAdvantages } from '../../algorithms/opo';
import { optimalTokenBaselineAdvantages } from '../../algorithms/optimal-token-baseline';
import { reinforcePlusPlusAdvantages, reinforcePlusPlusBaselineAdvantages } from '../../algorithms/reinforce';
import { remaxAdvantages } from '../../algorithms/remax';
import { rlooAdvantages } from '../../algorithms/rloo';
import { turnGaeAdvantages } from '../../algorithms/turn-gae';
import { turnGrpoAdvantages } from '../../algorithms/turn-advantages';
import { isPluginPath, type PluginPath } from '../config/plugin-path';
import type { RunConfig } from '../config/schema';
import { sum } from './advantage-batch';

/** Name of an estimator in the table. */
export type EstimatorName =
  Exclude<RunConfig['algorithm']['adv_estimator'], PluginPath> | 'gae_by_turn' | 'gae_of_turns' | 'grpo_by_turn';

const withCritic = ({ advantages, returns }: { advantages: Float32Array[]; returns: Float32Array[] }) => ({
  tokens: advantages,
  returns,
});

export const builtInEstimators: Readonly<Record<EstimatorName, Estimator>> = {
  gae: { estimate: ({ sequences }, settings) => withCritic(maskedGaeAdvantages(sequences, settings)) },
  gae_by_turn: {
    estimate: ({ sequences }, settings) =>
      withCritic(
        biLevelGaeAdvantages(
          sequences.map(row => ({
            ...row,
            mask: row.advantageMask,
            turnEnds: settings.compat_ragen ? nonZeroRewards(row.rewards) : row.turnEnds,
          })),
          settings,
        ),
      ),
  },
  gae_of_turns: {
    estimate: ({ sequences }, { turn_gae, high_level_gamma: gamma, high_level_lam: lam }) => {
      const rows = sequences.map(row => ({
        ...row,
        mask: row.mask.map((trained, token) => trained & row.advantageMask[token]),
      }));
      const value = turn_gae === 'last' ? 'last' : 'first';
      const { targets, ...estimate } = turnGaeAdvantages(rows, { gamma, lam, value });
      return { ...withCritic(estimate), targets };
    },
  },
  grpo: { estimate: (batch, settings) => ({ samples: grpoAdvantages(batch, settings) }) },
  grpo_by_turn: {
    estimate: ({ sequences }, settings) => ({
      turns: turnGrpoAdvantages(
        { rewards: sequences.map(rewardsByTurn), groups: sequences.map(({ group }) => group) },
        settings,
      ),
    }),
  },
  brpo: { estimate: (batch, settings) => ({ samples: brpoAdvantages(batch, settings) }) },
  arpo: { estimate: batch => ({ samples: arpoAdvantages(batch.scores) }) },
  rloo: { estimate: batch => ({ samples: rlooAdvantages(batch) }) },
  opo: { estimate: batch => ({ samples: opoAdvantages(batch, batch.masks) }) },
  tir_optimal_token_baseline: {
    estimate: ({ sequences }) => ({
      tokens: optimalTokenBaselineAdvantages(
        sequences,
        sequences.map(({ group }) => group),
      ),
    }),
  },
  remax: {
    estimate: ({ sequences }) => ({
      tokens: remaxAdvantages(
        sequences,
        sequences.map(({ baseline }) => baseline),
      ),
    }),
  },
  reinforce_plus_plus: {
    estimate: ({ sequences }, { gamma }) => ({ tokens: reinforcePlusPlusAdvantages(sequences, gamma) }),
  },
  reinforce_plus_plus_baseline: {
    estimate: batch => ({ tokens: reinforcePlusPlusBaselineAdvantages(batch, batch.masks) }),
  },
};

/**
 * Returns the name of the configured built-in estimator, or the path of a plug-in. The per-turn variants of gae and grpo
 * have separate names.
 */
export function estimatorName({ algorithm, agent_proxy, workbench }: RunConfig): EstimatorName | PluginPath {
  const { adv_estimator: name, bi_level_gae } = algorithm;
  if (isPluginPath(name)) return name;
  if (name === 'gae' && workbench.turn_gae !== 'off') return 'gae_of_turns';
  if (name === 'gae') return bi_level_gae ? 'gae_by_turn' : 'gae';
  return name === 'grpo' && agent_proxy.use_turn_scores ? 'grpo_by_turn' : name;
}

/** Returns the sum of the rewards of each turn. A turn's rewards begin after the end of the previous turn. */
const rewardsByTurn = ({ rewards, turnEnds }: TokenSequence): number[] =>
  turnEnds.map((end, turn) => sum(rewards.subarray(turn === 0 ? 0 : turnEnds[turn - 1] + 1, end + 1)));
