// Names of metrics that a person can read: one table from the keys of docs/METRICS.md to names. A test checks that the
// table covers every documented key and that no two keys share a name. Placeholders in keys match one part of a key and
// are filled into the name; `<side>` matches `train` and `val-env`, `<sample>` the samples of the collapse diagnosis.
// Invariant: the first matching entry names a key. Pages show the key itself in tooltips.

/** Names by key or pattern. A more specific entry stands before a more general one. */
const names: readonly (readonly [key: string, name: string])[] = [
  ['step', 'Training step'],
  ['time', 'Wall-clock time'],
  ['wall_s', 'Run time'],
  ['<side>/num_episodes', 'Episodes, all tags, <side>'],
  ['val-env/num_prompts', 'Prompts, validation'],
  ['<side>/num_turns/mean', 'Turns per episode, <side>'],
  ['<side>/context_full', 'Episodes ended by a full context, <side>'],
  ['<side>/context_shortened', 'Episodes with a shortened context, <side>'],
  ['<side>/env_error_rate', 'Environment errors, <side>'],
  ['<side>/response_length', 'Response length per episode, <side>'],
  ['val-env/response_length/clip_ratio', 'Responses at the limit, validation'],
  ['val-env/rollout/max_tile', 'Largest tile, validation'],
  ['train/charts/avg_episode_return', 'Return, training (train/charts)'],
  ['val-env/charts/avg_episode_return', 'Return, validation'],
  ['charts/avg_episode_return', 'Return, training'],
  ['train/batch_size', 'Samples trained per step'],
  ['train/num_mini_batches', 'Mini-batches per step'],
  ['train/rollout_attempts', 'Batches played by dynamic sampling'],
  ['train/skipped_step', 'Skipped step'],
  ['train/soft_reweight_<stat>', 'Group weight (<stat>)'],
  ['<side>/<tag>/success', 'Success, <side>'],
  ['<side>/<tag>/pass@<k>', 'Pass@<k>, <side>'],
  ['<side>/<tag>/num_episodes', 'Episodes, <side>'],
  ['<side>/<tag>/num_actions', 'Actions per episode, <side>'],
  ['<side>/<tag>/action_is_effective', 'Effective actions, <side>'],
  ['<side>/<tag>/action_is_valid', 'Valid actions, <side>'],
  ['<side>/<tag>/manager_invalid_action', 'Answers without a valid action, <side>'],
  ['<side>/<tag>/tool_calls', 'Tool calls per episode, <side>'],
  ['<side>/<tag>/failed_tool_calls', 'Failed tool calls, <side>'],
  ['<side>/<tag>/tool_call_ms', 'Duration of a tool call, <side>'],
  ['<side>/<tag>/episodic_return', 'Raw return, <side>'],
  ['<side>/<tag>/final_score', 'Final score, <side>'],
  ['<side>/<tag>/max_tile', 'Largest tile at the end, <side>'],
  ['<side>/<tag>/component_reward', 'Reward of all components, <side>'],
  ['<side>/<tag>/components/<key>', 'Reward component: <key>, <side>'],
  ['<side>/<tag>/roles/<role>/score', 'Score of <role>, <side>'],
  ['<side>/<tag>/roles/<role>/success', 'Success rate of <role>, <side>'],
  ['<side>/<tag>/roles/<role>/turns', 'Turns of <role>, <side>'],
  ['<side>/<tag>/judges/<key>/missing', 'Episodes without a score of the judge: <key>, <side>'],
  ['<side>/<tag>/judges/<key>/agreement', 'Correlation of two judges: <key>, <side>'],
  ['<side>/<tag>/judges/<key>/difference', 'Difference of two judges: <key>, <side>'],
  ['<side>/<tag>/judges/<key>/requests', 'Requests to judges: <key>, <side>'],
  ['<side>/<tag>/judges/<key>/tokens', 'Tokens of judges: <key>, <side>'],
  ['<side>/<tag>/judges/<key>/cost', 'Cost of judges: <key>, <side>'],
  ['<side>/<tag>/non-zero/traj_sum/<key>', 'Sum of <key>, non-zero episodes, <side>'],
  ['<side>/<tag>/traj_sum/<key>', 'Sum of <key>, <side>'],
  ['<side>/<tag>/non-zero/<key>', 'Environment value: <key>, non-zero episodes, <side>'],
  ['<side>/<tag>/<key>', 'Environment value: <key>, <side>'],
  ['critic/score/<stat>', 'Score (<stat>)'],
  ['critic/rewards/<stat>', 'Reward (<stat>)'],
  ['critic/advantages/<stat>', 'Advantage (<stat>)'],
  ['critic/returns/<stat>', 'Critic target (<stat>)'],
  ['critic/values/<stat>', 'Predicted value (<stat>)'],
  ['critic/vf_loss', 'Critic loss'],
  ['critic/vf_clipfrac', 'Critic clip fraction'],
  ['critic/vf_explained_var', 'Variance explained by the critic'],
  ['critic/vpred_mean', 'Predicted value during the update'],
  ['critic/grad_norm', 'Gradient norm, critic'],
  ['critic/lr', 'Learning rate, critic'],
  ['critic/skipped_updates', 'Skipped updates, critic'],
  ['actor/pg_loss', 'Policy loss'],
  ['actor/pg_clipfrac', 'Clip fraction'],
  ['actor/pg_clipfrac_lower', 'Dual-clip fraction'],
  ['actor/ppo_kl', 'KL from the sampling policy'],
  ['actor/entropy', 'Entropy'],
  ['actor/entropy_estimate', 'Entropy (estimate)'],
  ['actor/entropy_limit', 'Largest possible entropy'],
  ['actor/entropy_loss', 'Entropy term of the loss'],
  ['actor/kl_loss', 'KL from the reference policy'],
  ['actor/kl_coef', 'Weight of the KL term'],
  ['actor/reward_kl_penalty', 'KL penalty in the rewards'],
  ['actor/reward_kl_penalty_coeff', 'Weight of the KL penalty in the rewards'],
  ['actor/grad_norm', 'Gradient norm'],
  ['actor/lr', 'Learning rate'],
  ['actor/skipped_updates', 'Skipped updates'],
  ['rollout/in_group_reward_<stat>', 'In-group reward (<stat>)'],
  ['rollout/chosen_in_group_reward_<stat>', 'In-group reward, kept groups (<stat>)'],
  ['rollout/in_group_entropy_<stat>', 'In-group entropy (<stat>)'],
  ['rollout/chosen_in_group_entropy_<stat>', 'In-group entropy, kept groups (<stat>)'],
  ['rollout/in_group_length_<stat>', 'In-group episode length (<stat>)'],
  ['rollout/chosen_in_group_length_<stat>', 'In-group episode length, kept groups (<stat>)'],
  ['rollout/in_group_<stat>', 'In-group filter measure (<stat>)'],
  ['rollout/chosen_in_group_<stat>', 'In-group filter measure, kept groups (<stat>)'],
  ['rollout/filter_kept_count', 'Groups kept by the filter (count)'],
  ['rollout/filter_kept_ratio', 'Groups kept by the filter'],
  ['rollout/filter_zero_count', 'Groups without reward variance'],
  ['rollout/zero_variance_ratio', 'Share of groups without reward variance'],
  ['rollout/trajectory_filter_candidates', 'Candidates of the trajectory filter'],
  ['rollout/trajectory_filter_kept_count', 'Episodes kept by the trajectory filter (count)'],
  ['rollout/trajectory_filter_kept_ratio', 'Episodes kept by the trajectory filter'],
  ['rollout/trajectory_filter_least', 'Lowest value kept by the trajectory filter'],
  ['curriculum/easy', 'Tags in the pool easy'],
  ['curriculum/normal', 'Tags in the pool normal'],
  ['curriculum/hard', 'Tags in the pool hard'],
  ['curriculum/<tag>/groups', 'Groups by the curriculum'],
  ['curriculum/<tag>/pool', 'Difficulty pool'],
  ['curriculum/<tag>/success', 'Success, moving average of the curriculum'],
  ['rollout/gibberish_rate', 'Episodes with gibberish'],
  ['rollout/repetition_rate', 'Episodes with loops of tokens'],
  ['rollout/empty_after_filter', 'Update skipped after the filters'],
  ['rollout/empty_steps', 'Steps in a row without a kept group'],
  ['rollout/greedy_score', 'Score of greedy episodes'],
  ['rollout/staleness', 'Age of the rollout (steps)'],
  ['rollout/ref_log_prob', 'Log-prob under the reference policy'],
  ['distillation/kl', 'Divergence from the teacher'],
  ['distillation/teacher_log_prob', 'Log-prob under the teacher'],
  ['rollout/max_tile', 'Largest tile'],
  ['rollout/invalid_answer_rate', 'Answers without an action'],
  ['rollout/overlap', 'Time in which sampling and training overlap'],
  ['rollout_corr/kl', 'Sampler divergence (KL)'],
  ['rollout_corr/k3_kl', 'Sampler divergence (k3 estimate)'],
  ['rollout_corr/chi2_token', 'Sampler divergence (χ²)'],
  ['rollout_corr/prob_diff_mean', 'Sampler probability difference'],
  ['rollout_corr/training_ppl', 'Perplexity in training'],
  ['rollout_corr/rollout_ppl', 'Perplexity under the sampler'],
  ['rollout_corr/rollout_is_ratio_fraction_high', 'Importance weights above the threshold'],
  ['rollout_corr/rollout_is_ratio_fraction_low', 'Importance weights below the inverse threshold'],
  ['rollout_corr/rollout_is_eff_sample_size', 'Effective sample size'],
  ['rollout_corr/rollout_is_<stat>', 'Importance weight (<stat>)'],
  ['response_length/clip_ratio', 'Responses at the limit'],
  ['response_length/characters', 'Response length in characters'],
  ['response_length/<stat>', 'Response length (<stat>)'],
  ['prompt_length/clip_ratio', 'Prompts at the limit'],
  ['prompt_length/<stat>', 'Prompt length (<stat>)'],
  ['thoughts/distinct_1', 'Distinct words in thoughts'],
  ['thoughts/distinct_2', 'Distinct word pairs in thoughts'],
  ['thoughts/most_frequent', 'Most frequent thought'],
  ['thoughts/rate', 'Answers with a thought'],
  ['thoughts/prompt_information', 'Prompt information in first thoughts (text only)'],
  ['early_stopped/<type>', 'Early stop: <type>'],
  ['plugin_charts/<name>/<metric>', 'Chart <name>: <metric>'],
  ['plugins/<name>', 'Plug-in <name>'],
  ['plugins/<name>/<metric>', 'Plug-in <name>: <metric>'],
  ['collapse/valid_thinking_rate', 'Turns with reasoning'],
  ['collapse/first_turn_num_total', 'First turns examined'],
  ['collapse/first_turn_num_valid', 'First turns with reasoning (count)'],
  ['collapse/first_turn_valid_rate', 'First turns with reasoning'],
  ['<sample>/<metric>_ci_low', '<metric>, lower bound of 95 %'],
  ['<sample>/<metric>_ci_high', '<metric>, upper bound of 95 %'],
  ['<sample>/mi_estimate', 'Mutual information, <sample>'],
  ['<sample>/mi_seq_estimate', 'Mutual information, <sample> (complete texts)'],
  ['<sample>/mi_upper_bound', 'Mutual information, <sample> (upper bound)'],
  ['<sample>/mi_threshold', 'Mutual information, <sample> (threshold)'],
  ['<sample>/mi_zscore', 'Mutual information, <sample> (z-score)'],
  ['<sample>/mi_zscore_seq', 'Mutual information, <sample> (z-score, complete texts)'],
  ['<sample>/mi_zscore_ema', 'Mutual information, <sample> (z-score, EMA)'],
  ['<sample>/mi_zscore_ema_seq', 'Mutual information, <sample> (z-score, EMA, complete texts)'],
  ['<sample>/paper_mi_estimate', 'Mutual information, <sample> (paper)'],
  ['<sample>/paper_mi_zscore', 'Mutual information, <sample> (paper, z-score)'],
  ['<sample>/matched_log_prob_mean', 'Log-prob under the own prompt, <sample>'],
  ['<sample>/marginal_log_prob_mean', 'Log-prob under all prompts, <sample>'],
  ['<sample>/paper_marginal_log_prob_mean', 'Log-prob under all prompts, <sample> (paper)'],
  ['<sample>/conditional_entropy_est', 'Reasoning entropy given the prompt, <sample>'],
  ['<sample>/conditional_entropy_seq_est', 'Reasoning entropy given the prompt, <sample> (complete texts)'],
  ['<sample>/reasoning_entropy_est', 'Reasoning entropy, <sample>'],
  ['<sample>/reasoning_entropy_seq_est', 'Reasoning entropy, <sample> (complete texts)'],
  ['<sample>/paper_reasoning_entropy_est', 'Reasoning entropy, <sample> (paper)'],
  ['<sample>/retrieval_accuracy', 'Retrieval accuracy, <sample>'],
  ['<sample>/retrieval_accuracy@<k>', 'Retrieval accuracy, <sample> (top <k>)'],
  ['<sample>/retrieval_chance_level', 'Retrieval by chance, <sample>'],
  ['<sample>/retrieval_chance_level@<k>', 'Retrieval by chance, <sample> (top <k>)'],
  ['<sample>/retrieval_above_chance', 'Retrieval above chance, <sample>'],
  ['<sample>/retrieval_above_chance@<k>', 'Retrieval above chance, <sample> (top <k>)'],
  ['<sample>/marginal_std', 'Deviation of the marginal log-prob, <sample>'],
  ['<sample>/marginal_std_seq', 'Deviation of the marginal log-prob, <sample> (complete texts)'],
  ['<sample>/marginal_std_ema', 'Deviation of the marginal log-prob, <sample> (EMA)'],
  ['<sample>/marginal_std_ema_seq', 'Deviation of the marginal log-prob, <sample> (EMA, complete texts)'],
  ['<sample>/paper_marginal_std', 'Deviation of the marginal log-prob, <sample> (paper)'],
  ['<sample>/regime', 'Regime, <sample>'],
  ['<sample>/regime_confidence', 'Probability of the regime, <sample>'],
  ['<sample>/<metric>', 'Collapse metric: <metric>, <sample>'],
  ['perf/throughput', 'Tokens per second'],
  ['perf/rollout_tokens_per_s', 'Tokens per second, rollout'],
  ['perf/train_tokens_per_s', 'Tokens per second, update'],
  ['perf/total_num_tokens', 'Tokens per step'],
  ['perf/time_per_step', 'Time per step'],
  ['perf/log_prob_tokens_per_s', 'Tokens per second, log-probs'],
  ['perf/ref_tokens_per_s', 'Tokens per second, reference policy'],
  ['perf/cpu_cores', 'Trainer: processor cores in use'],
  ['perf/cpu_machine', 'Machine: processor in use'],
  ['perf/memory_machine', 'Machine: memory in use'],
  ['perf/gpu_busy', 'Machine: GPU in use'],
  ['perf/gpu_memory_mb', 'GPU memory (MB)'],
  ['perf/rss_mb', 'Trainer memory (MB)'],
  ['timing_s/gen', 'Time: rollout'],
  ['timing_s/rollout_wait', 'Time: waiting for the rollout'],
  ['timing_s/gen_max', 'Time: greedy rollout'],
  ['timing_s/env', 'Time: waiting for environments'],
  ['timing_s/filter', 'Time: rollout filter'],
  ['timing_s/old_log_prob', 'Time: log-probs before the update'],
  ['timing_s/ref', 'Time: log-probs of the reference policy'],
  ['timing_s/teacher', 'Time: log-probs of the teacher'],
  ['timing_s/values', 'Time: critic’s values'],
  ['timing_s/adv', 'Time: advantages'],
  ['timing_s/update_critic', 'Time: update of the critic'],
  ['timing_s/update_actor', 'Time: update of the policy'],
  ['timing_s/collapse_first_turn_step', 'Time: diagnosis, first turns'],
  ['timing_s/collapse_multi_turn_step', 'Time: diagnosis, all turns'],
  ['timing_s/collapse_metrics', 'Time: collapse diagnostics'],
  ['timing_s/testing', 'Time: validation'],
  ['timing_s/save_checkpoint', 'Time: saving the checkpoint'],
  ['timing_s/dump_rollouts', 'Time: writing episodes'],
  ['timing_s/step', 'Time: complete step'],
  ['timing_s/train_step', 'Time: step without validation'],
  ['timing_s/eval_step', 'Time: validation of the step'],
  ['timing_s/train_total', 'Time: training so far'],
  ['timing_s/eval_total', 'Time: validation so far'],
  ['timing_s/collapse_total', 'Time: collapse diagnostics so far'],
  ['timing_s/total', 'Time: run so far'],
  ['timing_s/<phase>', 'Time: phase <phase>'],
  ['timing_per_token_ms/<phase>', 'Milliseconds per token: phase <phase>'],
  ...gradientNames('grad_norm', ''),
  ...gradientNames('grad_norm_prefilter', ', before the filter'),
  ['grad_snr/<bucket>/<part>', 'Gradient signal-to-noise, <part>, <bucket>'],
  ['grad_snr_prefilter/<bucket>/<part>', 'Gradient signal-to-noise, <part>, <bucket>, before the filter'],
  ['grad_cosine/<bucket>/<other>/<part>', 'Gradient cosine, <part>, <bucket> and <other>'],
  ['grad_cosine_prefilter/<bucket>/<other>/<part>', 'Gradient cosine, <part>, <bucket> and <other>, before the filter'],
  ['grad_cosine/<bucket>/<pair>', 'Gradient cosine, <pair>, <bucket>'],
  ['grad_cosine_prefilter/<bucket>/<pair>', 'Gradient cosine, <pair>, <bucket>, before the filter'],
  ['grad_analysis/<key>', 'Gradient analysis: <key>'],
];

/** Names of the gradient metrics of one family; `when` is appended to each name. */
function gradientNames(family: string, when: string): [string, string][] {
  return [
    [`${family}/per_sample/<part>`, `Gradient norm per sample, <part>${when}`],
    [`${family}/<bucket>/per_sample/<part>`, `Gradient norm per sample, <part>, <bucket>${when}`],
    [`${family}/<bucket>/per_token/<part>`, `Gradient norm per token, <part>, <bucket>${when}`],
    [`${family}/<bucket>/loss/<part>`, `Loss, <part>, <bucket>${when}`],
    [`${family}/<bucket>/entropy_mean`, `Entropy, <bucket>${when}`],
    [`${family}/<bucket>/pg_clipfrac`, `Clip fraction, <bucket>${when}`],
    [`${family}/<bucket>/pg_clipfrac_lower`, `Dual-clip fraction, <bucket>${when}`],
    [`${family}/<bucket>/ppo_kl`, `KL from the sampling policy, <bucket>${when}`],
    [`${family}/<bucket>/sample_count`, `Samples, <bucket>${when}`],
    [`${family}/<bucket>/sample_pct`, `Share of samples, <bucket>${when}`],
    [`${family}/<bucket>/reward_std_<stat>`, `Reward std (<stat>), <bucket>${when}`],
    [`${family}/<bucket>/group_rv_count`, `Prompt groups, <bucket>${when}`],
    [`${family}/<bucket>/<part>`, `Gradient norm, <part>, <bucket>${when}`],
    [`${family}/<part>`, `Gradient norm, <part>${when}`],
  ];
}

/** What the parts of a key are called in a name. Other parts are shown with spaces instead of underscores. */
const words: Readonly<Record<string, string>> = {
  train: 'training',
  'val-env': 'validation',
  collapse_first_turn_sample: 'first turns',
  collapse_trajectory_sample: 'all turns',
  collapse_turn_sample: 'uniform turns',
  all: 'all groups',
};

const patterns = names.map(([key, name]) => {
  const placeholders = [...key.matchAll(/<([a-z]+)>/g)].map(match => match[1]);
  const source = key
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replaceAll('<side>', '(train|val-env)')
    .replaceAll('<sample>', '(collapse_(?:first_turn|trajectory|turn)_sample)')
    .replace(/<[a-z]+>/g, '([^/]+)');
  return { pattern: new RegExp(`^${source}$`), placeholders, name };
});

const found = new Map<string, string | undefined>();

/** Returns the name of a key from the table; undefined for a key that the table does not cover. */
export function nameInTable(key: string): string | undefined {
  if (!found.has(key)) found.set(key, lookedUp(key));
  return found.get(key);
}

/** Returns the name of a key: from the table or, for a key of the user's own code, from the parts of the key. */
export function metricName(key: string): string {
  const name = nameInTable(key);
  if (name !== undefined) return name;
  const text = key.replaceAll('_', ' ').replaceAll('/', ' · ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns the name of a key without its side, for a chart that has one line per side: `Success`. */
export function quantityName(key: string): string {
  return metricName(key).replace(/, (training|validation)(?= \(|$)/, '');
}

/** Returns the environment tag in a key; undefined for a key without a tag, or one that the table does not cover. */
export const tagOf = (key: string): string | undefined => matchedEntry(key)?.parts.get('tag');

/** Returns the first entry of the table that matches a key, with the parts of the key at its placeholders. */
function matchedEntry(key: string): { name: string; parts: ReadonlyMap<string, string> } | undefined {
  for (const { pattern, placeholders, name } of patterns) {
    const match = pattern.exec(key);
    if (match) return { name, parts: new Map(placeholders.map((placeholder, i) => [placeholder, match[i + 1]])) };
  }
  return undefined;
}

function lookedUp(key: string): string | undefined {
  const entry = matchedEntry(key);
  if (!entry) return undefined;
  const { name, parts } = entry;
  const bounded = /_ci_(low|high)$/.test(key);
  return name.replace(/<([a-z]+)>/g, (_, placeholder: string) => {
    const part = parts.get(placeholder) ?? '';
    if (bounded && placeholder === 'metric') return metricName(`${parts.get('sample')}/${part}`);
    return words[part] ?? part.replaceAll('_', ' ');
  });
}
