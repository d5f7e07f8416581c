// Checks the settings of the training algorithm: batch sizes, advantage estimator, loss masks and filters. The
// `sentence` of each violated rule says what to change.
import type { RunConfig } from './schema';
import { isPluginPath } from './plugin-path';
import type { BrokenRule } from './broken-rule';

export function batchRules(config: RunConfig): BrokenRule[] {
  const { actor, rollout } = config.actor_rollout_ref;
  const { env_groups, group_size } = config.es_manager.train;
  const broken: BrokenRule[] = [];
  const updates = [{ at: 'actor_rollout_ref.actor', ...actor }];
  if (config.algorithm.adv_estimator === 'gae') updates.push({ at: 'critic', ...actor, ...config.critic });
  const { context_window_mode, max_turn } = config.agent_proxy;
  const isOneSample = context_window_mode === 'full' && config.workbench.context_mask === 'none';
  const perEpisode = isOneSample ? 1 : max_turn; // upper bound on samples per episode
  const { strategy, value: best } = config.workbench.trajectory_filter;
  const groups = selections(config).reduce((sum, size) => sum + mostKept(size, rollout), 0);
  const episodes = groups * group_size * (strategy === 'top' ? best : 1);
  const kept = episodes * perEpisode;
  for (const { at, ppo_mini_batch_size: mini, ppo_micro_batch_size_per_gpu: micro } of updates) {
    const key = `${at}.ppo_mini_batch_size`;
    if (mini % micro !== 0)
      broken.push({
        key: `${at}.ppo_micro_batch_size_per_gpu`,
        sentence: `is ${micro}, which does not divide ppo_mini_batch_size ${mini}: choose a divisor`,
      });
    if (kept < mini)
      broken.push({
        key,
        sentence: `is ${mini}, more than the ${Number(kept.toFixed(2))} episodes that a step trains on (env_groups ${env_groups} × group_size ${group_size} × share kept by the ${strategy === 'top' ? 'filters' : 'rollout filter'}): use a smaller value, or raise env_groups`,
      });
  }
  return broken;
}

type Rollout = RunConfig['actor_rollout_ref']['rollout'];

/**
 * Returns the number of groups of each selection of the rollout filter: of all groups or, with `filter_by_tag`, of the
 * groups of each tag. A curriculum changes the division among the played tags, which keep at least one group each; the
 * result is then the division of which the filter can keep the most groups.
 */
function selections({ es_manager: { train }, workbench, actor_rollout_ref: { rollout } }: RunConfig): number[] {
  const { env_groups, env_configs } = train;
  if (!workbench.filter_by_tag) return [env_groups];
  const sizes = new Map<string, number>();
  env_configs.tags.forEach((tag, i) => sizes.set(tag, (sizes.get(tag) ?? 0) + (env_configs.n_groups[i] ?? 0)));
  if (!workbench.curriculum) return [...sizes.values()];
  const played = [...sizes.values()].filter(size => size > 0);
  // top_k keeps one group even of a tag whose share is less, so it keeps the most if all tags but one have one group.
  // top_k_abs keeps the most of equal numbers; to the other strategies, the division is indifferent.
  if (rollout.rollout_filter_strategy !== 'top_k') return played.map(() => env_groups / played.length);
  return played.map((_, i) => (i === 0 ? env_groups - played.length + 1 : 1));
}

/** Returns an upper bound on the number of groups that the rollout filter keeps of `size` groups. */
function mostKept(
  size: number,
  {
    rollout_filter_value: value,
    rollout_filter_strategy: strategy,
  }: Pick<Rollout, 'rollout_filter_value' | 'rollout_filter_strategy'>,
): number {
  const kept = {
    top_p: size * Math.min(value, 1),
    top_k: Math.max(size * value, 1),
    top_k_abs: Math.max(value, 1),
    min_p: size,
  };
  return Math.min(kept[strategy], size);
}

/** Whether the rollout filter drops any groups. */
const filters = ({
  rollout_filter_strategy: strategy,
  rollout_filter_value: value,
  rollout_filter_include_zero: includesZero,
}: Rollout): boolean => strategy !== 'top_p' || value < 1 || !includesZero;

/** Returns a note if `workbench.filter_by_tag` has no effect. */
export function filterNotes({ actor_rollout_ref: { rollout }, es_manager, trainer, workbench }: RunConfig): string[] {
  if (!workbench.filter_by_tag || trainer.val_only) return [];
  const note = (why: string) => [`config: workbench.filter_by_tag is true, but has no effect, because ${why}`];
  const tags = new Set(es_manager.train.env_configs.tags);
  if (tags.size === 1) return note(`${[...tags].join()} is the only environment that is trained`);
  if (filters(rollout) || isPluginPath(rollout.rollout_filter_metric)) return [];
  return note('the rollout filter keeps all groups (rollout_filter_value 1, rollout_filter_include_zero true)');
}

/** Rules for combinations of the advantage estimator with turn rewards or advantage factors. */
export function advantageRules({
  algorithm,
  agent_proxy,
  actor_rollout_ref: { actor },
  workbench,
}: RunConfig): BrokenRule[] {
  const { adv_estimator: estimator, bi_level_gae, soft_advantage_reweight } = algorithm;
  const { use_turn_scores, reward_normalization } = agent_proxy;
  const broken: BrokenRule[] = [];
  const need = (wanted: boolean, key: string, sentence: string): void => {
    if (wanted) broken.push({ key, sentence });
  };
  need(
    bi_level_gae && estimator !== 'gae',
    'algorithm.bi_level_gae',
    `is true, but adv_estimator is ${estimator}, which has no critic: set adv_estimator to gae`,
  );
  need(
    use_turn_scores && !isPluginPath(estimator) && !['gae', 'grpo', 'reinforce_plus_plus'].includes(estimator),
    'agent_proxy.use_turn_scores',
    `is true, but adv_estimator ${estimator} compares whole episodes: set adv_estimator to gae, grpo or reinforce_plus_plus, or set this key to false`,
  );
  need(
    use_turn_scores && reward_normalization.method !== 'identity',
    'agent_proxy.reward_normalization.method',
    `is ${reward_normalization.method}, but with use_turn_scores there is no episode score to normalise: use identity`,
  );
  need(
    estimator === 'remax' && reward_normalization.method !== 'identity',
    'agent_proxy.reward_normalization.method',
    `is ${reward_normalization.method}, but adv_estimator remax subtracts the score of a greedy episode, which is not normalised: use identity`,
  );
  need(
    use_turn_scores && bi_level_gae && workbench.compat === 'ragen',
    'workbench.compat',
    'is ragen, but RAGEN does not support use_turn_scores with bi_level_gae: set workbench.compat to corrected',
  );
  const { turn_gae } = workbench;
  need(
    turn_gae !== 'off' && estimator !== 'gae',
    'workbench.turn_gae',
    `is ${turn_gae}, but adv_estimator is ${estimator}, which has no critic: set adv_estimator to gae, or this key to off`,
  );
  need(
    turn_gae !== 'off' && bi_level_gae,
    'workbench.turn_gae',
    `is ${turn_gae}, but bi_level_gae estimates advantages of tokens too: set bi_level_gae to false, or this key to off`,
  );
  need(
    turn_gae !== 'off' && !use_turn_scores,
    'workbench.turn_gae',
    `is ${turn_gae}, which needs the rewards of turns: set agent_proxy.use_turn_scores to true, or this key to off`,
  );
  need(
    turn_gae !== 'off' && workbench.compat === 'ragen',
    'workbench.turn_gae',
    `is ${turn_gae}, but RAGEN (workbench.compat=ragen) has no GAE over turns: set it to off`,
  );
  const factors = {
    'algorithm.soft_advantage_reweight': soft_advantage_reweight,
    'actor_rollout_ref.actor.grpo_advantage_length_weight': actor.grpo_advantage_length_weight,
  };
  for (const [key, on] of Object.entries(factors))
    need(
      on && estimator !== 'grpo',
      key,
      `is true, but this key only applies to GRPO advantages: set adv_estimator to grpo, or set this key to false`,
    );
  return broken;
}

/**
 * Rejects `bypass_mode` if the loss covers tokens that were not sampled, because the sampler returns log-probs only for
 * sampled tokens.
 */
export function maskRules({ algorithm, rollout_manager, workbench }: RunConfig): BrokenRule[] {
  const reason = !rollout_manager.use_loss_mask
    ? 'enable_response_mask=false'
    : workbench.compat === 'ragen'
      ? 'workbench.compat=ragen'
      : null;
  if (!algorithm.rollout_correction.bypass_mode || reason === null) return [];
  return [
    {
      key: 'algorithm.rollout_correction.bypass_mode',
      sentence: `is true, but with ${reason} the loss covers tokens that were not sampled and have no log-probs: set bypass_mode to false`,
    },
  ];
}

export function filterRules({
  actor_rollout_ref: { rollout },
  algorithm,
  es_manager,
  workbench,
}: RunConfig): BrokenRule[] {
  const at = 'actor_rollout_ref.rollout.rollout_filter_value';
  const { rollout_filter_value: value, rollout_filter_strategy: strategy, rollout_filter_metric: metric } = rollout;
  const broken: BrokenRule[] = [];
  if (strategy === 'top_k_abs' && (value < 1 || !Number.isInteger(value)))
    broken.push({
      key: at,
      sentence: `is ${value}, but with rollout_filter_strategy top_k_abs this key is a number of groups: use an integer of at least 1`,
    });
  if ((strategy === 'top_k' || strategy === 'min_p') && value > 1)
    broken.push({
      key: at,
      sentence: `is ${value}, but with rollout_filter_strategy ${strategy} this key is a share: use a number from 0 to 1`,
    });
  if (algorithm.filter_groups.enable && es_manager.train.group_size < 2)
    broken.push({
      key: 'es_manager.train.group_size',
      sentence: 'is 1, but filter_groups compares the episodes of a group and needs at least two: use 2 or more',
    });
  if (filters(rollout) && !isPluginPath(metric) && /_variance|_std/.test(metric) && es_manager.train.group_size < 2)
    broken.push({
      key: 'es_manager.train.group_size',
      sentence: `is 1, but ${metric} needs at least two episodes in a group: use 2 or more, or keep all groups (rollout_filter_strategy top_p, rollout_filter_value 1, rollout_filter_include_zero true)`,
    });
  if (workbench.filter_by_tag && workbench.compat === 'ragen')
    broken.push({
      key: 'workbench.filter_by_tag',
      sentence:
        'is true, but RAGEN (workbench.compat=ragen) selects among the groups of all environments: set it to false',
    });
  if (workbench.trajectory_filter.strategy !== 'none' && workbench.compat === 'ragen')
    broken.push({
      key: 'workbench.trajectory_filter.strategy',
      sentence: `is ${workbench.trajectory_filter.strategy}, but RAGEN (workbench.compat=ragen) filters only whole groups: set it to none`,
    });
  return broken;
}
