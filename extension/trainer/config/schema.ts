// Schema of a complete configuration: RAGEN's keys, plus the keys of RAGEN Workbench under `workbench`. Strict: an
// unknown key is an error. Descriptions appear in the documentation, hover texts and the JSON schema. Defaults live in
// media/presets/ppo_trainer.yaml, and RAGEN's own in base.yaml.
import { z } from 'zod';
import { agentProxy, customEnvs, esManager } from './schema-episodes';
import { modelConfig, modelInfo, output } from './schema-evaluation';
import type { JsonSchema } from '../../protocol/json-schema';
import { alarmNames } from '../../protocol/alarm-rules';
import { actorRolloutRef, count, critic, flag } from './schema-policy';

const algorithm = z
  .strictObject({
    gamma: z.number().min(0).max(1).describe('Discount from token to token.'),
    lam: z.number().min(0).max(1).describe('λ of generalised advantage estimation.'),
    high_level_gamma: z.number().min(0).max(1).describe('Discount from turn to turn of bi-level GAE.'),
    adv_estimator: z
      .enum(['gae', 'grpo', 'brpo', 'arpo', 'rloo', 'reinforce_plus_plus', 'reinforce_plus_plus_baseline', 'remax'])
      .describe(
        'How advantages are estimated; gae (PPO) is the one with a critic. remax compares with a greedy episode of the same prompt, brpo with the whole batch, arpo with nothing.',
      ),
    bi_level_gae: flag('GAE over turns first, then over the tokens of each.'),
    norm_adv_by_std_in_grpo: flag('Divide GRPO advantages by the deviation of the group; false is Dr. GRPO.'),
    use_kl_in_reward: flag('Subtract the KL divergence from the token rewards.'),
    kl_penalty: z
      .enum(['kl', 'k1', 'abs', 'mse', 'k2', 'low_var_kl', 'k3'])
      .describe('Estimator of the KL divergence in the reward.'),
    kl_ctrl: z
      .strictObject({
        type: z.enum(['fixed', 'adaptive']).describe('Keep the weight of the KL divergence, or steer it to a target.'),
        kl_coef: z.number().min(0).describe('Weight of the KL divergence in the reward.'),
        horizon: z.number().positive().describe('Pace of the adaptive controller, in episodes.'),
        target_kl: z.number().positive().describe('KL divergence that the adaptive controller aims at.'),
      })
      .describe('Weight of the KL divergence in the reward.'),
    zero_task_advantage: flag('Set all advantages to zero: a control run that only the regularisers drive.'),
    soft_advantage_reweight: flag("Scale GRPO advantages by the group's deviation relative to the largest one."),
    filter_groups: z
      .strictObject({
        enable: flag(
          'Dynamic sampling (DAPO): play further batches until env_groups groups, after the rollout filter, hold episodes that differ.',
        ),
        metric: z
          .enum(['acc', 'score', 'seq_reward'])
          .describe('What must differ within a group: success (acc), or the score, which seq_reward is too.'),
        max_num_gen_batches: z
          .int()
          .min(0)
          .describe('Most batches that a step plays; it then goes on with the groups that it has. 0 for no limit.'),
      })
      .describe("Dynamic sampling (DAPO): groups whose episodes are all alike are replaced by others'."),
    rollout_correction: z
      .strictObject({
        bypass_mode: flag("Take the sampler's own log-probs as old log-probs instead of computing them again."),
        rollout_is: z
          .enum(['auto', 'token', 'sequence'])
          .nullable()
          .describe(
            "Weigh the loss by how much likelier the training graph's policy finds a token, or an episode, than the sampler did (truncated importance sampling); null is off, auto is token where rollouts or the base are in 8 bits, else off.",
          ),
        rollout_is_threshold: z.number().positive().describe('Largest such weight.'),
      })
      .describe('Where old log-probs come from.'),
  })
  .describe('Advantages and KL control.');

const rewardModel = z
  .strictObject({
    overlong_buffer: z
      .strictObject({
        enable: flag('Punish answers that come near response_length.'),
        len: count('Tokens before response_length over which the punishment grows.'),
        penalty_factor: z.number().min(0).describe('The punishment of an answer that reaches response_length.'),
      })
      .describe('Overlong shaping (DAPO); counts as a penalty of the turn.'),
  })
  .describe('Changes to the reward of an episode.');

const rolloutManager = z
  .strictObject({
    use_loss_mask: flag("Train on the tokens that the model wrote alone; VAGEN's name of enable_response_mask."),
    use_gae_mask: flag(
      'Estimate advantages over the tokens that the model wrote alone; false over all between its first and its last.',
    ),
  })
  .describe("VAGEN's two masks (TRICO).");

const trainer = z
  .strictObject({
    project_name: z.string().describe('Project that the run belongs to.'),
    experiment_name: z.string().min(1).describe('Name of the run.'),
    local_log_dir: z.string().describe("Folder of evaluation results, from the workspace's root."),
    total_training_steps: z.int().min(0).describe('Training steps of the run; 0 with val_only, which takes none.'),
    test_freq: z.int().min(-1).describe('Validation after every so many steps and after the last; 0 or -1 never.'),
    save_freq: z
      .int()
      .min(-1)
      .describe('Checkpoint after every so many steps, and at the end; 0 or -1 at the end only.'),
    val_before_train: flag('Validate before the first step.'),
    val_only: flag('Validate once and end.'),
    validation_steps: count('Rollout batches of one validation.'),
    max_actor_ckpt_to_keep: count('Checkpoints kept; see workbench.keep_checkpoints.'),
    resume_mode: z
      .enum(['auto', 'disable', 'resume_path'])
      .describe(
        "With auto ragen resume goes on from the run's newest checkpoint; with disable a run cannot be resumed; with resume_path a new run begins with a checkpoint of another.",
      ),
    resume_from_path: z
      .string()
      .nullable()
      .describe("Folder of the checkpoint that resume_path begins with, from the workspace's root."),
    critic_warmup: z
      .int()
      .min(0)
      .describe('First step that updates the actor; the steps before it train the critic alone.'),
    log_group_rv_table: flag(
      "Write every step's groups with scores, deviation and whether they were kept to diagnostics/groups-<step>.jsonl.",
    ),
    gradient_analysis_mode: flag('Measure gradients of the loss and its parts by reward-variance bucket.'),
    gradient_analysis_every: count('Gradients are measured at step 1 and whenever so many steps have passed since.'),
    gradient_analysis_log_prefilter: flag('Measure the gradients of the whole rollout too, before the filter.'),
    gradient_analysis_only: flag('Take no optimizer step where gradients are measured.'),
    exit_after_gradient_analysis: flag('End the run after the first step that measured gradients.'),
    gradient_analysis_env_groups: count('Prompt groups of a rollout for the gradients alone; null for the step\'s own.').nullable(), // prettier-ignore
    gradient_analysis_group_size: count("Episodes of each of its groups; null for the step's own.").nullable(),
    logger: z.array(z.string()).describe('Where metrics go besides the run folder: console.'),
  })
  .describe('Course of the run.');

const collapseDetection = z
  .strictObject({
    compute_freq: count('Collapse metrics at step 1 and at every multiple of this.'),
    micro_batch_size: count('Sequences of one forward pass of the cross-scoring.'),
    first_turn_enabled: flag('Score the reasoning of first turns against the prompts of other groups.'),
    multi_turn_enabled: flag('Score reasoning from any turn against other contexts.'),
    num_samples: count('Reasoning texts scored; null for all.').nullable(),
  })
  .describe('Diagnosis of template collapse by mutual information (RAGEN-2).');

const workbench = z
  .strictObject({
    device: z
      .enum(['auto', 'cpu', 'webgpu', 'cuda'])
      .describe(
        'Where the model runs; auto takes a GPU that computes what the CPU computes, and faster, else the CPU.',
      ),
    precision: z
      .enum(['float32', 'float16'])
      .describe(
        'What products with weights are computed in; weights, attention, norms and losses are in float32 in any case. float16 is for GPUs.',
      ),
    rollout_quantization: z
      .enum(['none', 'int8'])
      .describe(
        'Sample with 8-bit products over the frozen base (LoRA alone); log-probs for training come from its own graph.',
      ),
    base_quantization: z.enum(['none', 'int8']).describe('Hold the frozen base in 8 bits while adapters train.'),
    try_longest_batch: flag(
      'Compute a gradient of the greatest length once before the first step, so that a lack of memory shows at once.',
    ),
    threads: z.int().min(0).describe('Threads of the model on the CPU; 0 for one a core.'),
    live_edit: flag('Follow the source files of environments: episodes that start after a save use what was saved.'),
    check_types: flag('Refuse saved code whose types do not fit, as code that does not build.'),
    async_rollout: flag(
      'A slow episode holds up no other: the others go on to their next turns. On the CPU results are the same either way.',
    ),
    coverage: flag(
      'Count how often episodes reach each line of environment code, which then takes about two and a half times as long.',
    ),
    step_timeout_ms: count('An environment that takes longer for a reset or step fails its episode.'),
    max_failed_episodes_share: z
      .number()
      .min(0)
      .max(1)
      .describe(
        "The run pauses when environments failed in more than this share of a batch's episodes; an evaluation ends.",
      ),
    // The default keeps runs resumable that predate this key.
    max_environment_memory_gb: z
      .number()
      .positive()
      .nullable()
      .describe(
        'GiB of memory that an environment process and all it starts may hold: what takes more fails its episodes; null for half of what the machine has.',
      )
      .default(null),
    max_skipped_steps: z
      .int()
      .min(0)
      .describe(
        'The run ends after more than so many steps in a row that were skipped, since their numbers were not finite.',
      ),
    compat: z
      .enum(['corrected', 'ragen'])
      .describe("With ragen, RAGEN's oddities are kept for comparison, as docs/QUIRKS.md lists them."),
    early_stops: z
      .array(z.enum(['reward_variance_collapse', 'low_validation_success']))
      .describe(
        'Reasons to end a run early: in-group deviation of rewards under a tenth of that of the first 10 steps, for 10 steps; validation success under 1 % in 5 validations in a row.',
      ),
    high_level_lam: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe('λ from turn to turn of bi-level GAE; null for algorithm.lam.'),
    turn_value: z
      .enum(['end', 'start'])
      .describe(
        "Which of a turn's values bi-level GAE compares between turns: that of its last token, or of its first.",
      ),
    collapse_turn_uniform: flag(
      'Diagnose collapse a third time, on turns drawn uniformly from all turns of the rollout.',
    ),
    watch: z
      .strictObject({
        enabled: flag('Raise alarms when a run shows the signs of an Echo Trap (docs/METRICS.md).'),
        stop_on: z.array(z.enum(alarmNames)).describe('Alarms that end the run.'),
      })
      .describe('Watch over reward deviation, gradients, entropy, repetition, lengths and invalid answers.'),
    // The default keeps runs resumable that predate this key.
    answer_tag: z
      .enum(['answer', 'ans'])
      .describe(
        "Tag of answers in prompts and in what is parsed: <answer>, or <ans> as in RAGEN's first version; instructions and states that show <answer> are shown with it.",
      )
      .default('answer'),
    // The default keeps runs resumable that predate this key.
    trajectory_filter: z
      .strictObject({
        strategy: z
          .enum(['none', 'top'])
          .describe('With top, only the best episodes of the groups that the rollout filter kept are trained on.'),
        value: z.number().gt(0).max(1).describe('Share of those episodes that top keeps, at least one.'),
        metric: z
          .enum(['reward', 'score'])
          .describe('What makes an episode better: the sum of its rewards, or that with its penalties.'),
        only_successful: flag(
          'Keep no episode that failed: where fewer than the share succeeded, all that did; where none did, the step is left out.',
        ),
      })
      .describe('Filter of single episodes; advantages are still taken over whole groups.')
      .default({ strategy: 'none', value: 0.25, metric: 'reward', only_successful: true }),
    // The default keeps runs resumable that predate this key.
    tensorboard: flag("Write the metrics as TensorBoard's event files too, in tensorboard/ of the run.").default(true),
    keep_checkpoints: count('Newest checkpoints (weights, optimizer, random states) kept in the run folder.'),
  })
  .describe('What RAGEN has no key for.');

export const runConfigSchema = z
  .strictObject({
    seed: z
      .strictObject({
        train: z
          .int()
          .min(0)
          .describe('First seed of the training groups; each step goes on where the last one ended.'),
        val: z.int().min(0).describe('First seed of the validation groups; the same in every validation.'),
      })
      .describe('Seeds of the environments and of all random streams.'),
    micro_batch_size_per_gpu: count(
      'Size of a forward and backward pass of actor and critic (their ppo_micro_batch_size_per_gpu).',
    ),
    log_prob_micro_batch_size_per_gpu: count('Episodes of one forward pass, for old and reference log-probs.'),
    ppo_mini_batch_size: count('Episodes of one optimizer step.'),
    model_path: z
      .string()
      .min(1)
      .describe(
        'Name of a model that comes along (ragen-tiny), folder with config.json, tokenizer.json and *.safetensors, or model of the Hugging Face hub (organisation/name, at a branch, tag or commit with @revision), which is fetched once.',
      ),
    enable_response_mask: flag(
      'Train on the tokens that the model wrote alone; false, with context_window_mode full, on all behind the system message.',
    ),
    grpo_advantage_length_weight: flag("Divide GRPO advantages by the response's length relative to the mean."),
    lora: z
      .strictObject({
        rank: z.int().min(0).describe('Rank of the adapters; 0 trains all weights.'),
        alpha: z.number().positive().describe('Scale of the adapters.'),
        dropout: z.number().min(0).lt(1).describe("Share of an adapter's inputs that is left out while it trains."),
        target_modules: z.union([z.string(), z.array(z.string())]).describe('Linear layers that get adapters.'),
      })
      .describe('Low-rank adapters.'),
    actor_rollout_ref: actorRolloutRef,
    critic,
    algorithm,
    reward_model: rewardModel,
    rollout_manager: rolloutManager,
    trainer,
    agent_proxy: agentProxy,
    es_manager: esManager,
    collapse_detection: collapseDetection,
    custom_envs: customEnvs,
    data: z
      .strictObject({
        apply_chat_template_kwargs: z
          .record(z.string(), z.unknown())
          .default({}) // the default lets RAGEN's configurations set `data` without this key
          .describe("Further variables of the model's chat template, such as enable_thinking or date_string."),
      })
      .describe('What goes into the chat template.'),
    output,
    model_config: modelConfig.nullable(),
    model_info: modelInfo.nullable(),
    workbench,
  })
  .describe('Configuration of a run.');

/** A complete, valid configuration. */
export type RunConfig = z.infer<typeof runConfigSchema>;
/** `custom_envs.<tag>`. */
export type TagConfig = RunConfig['custom_envs'][string];

/** JSON schema of a complete configuration. */
export const configJsonSchema = z.toJSONSchema(runConfigSchema, { io: 'input' }) as JsonSchema;
