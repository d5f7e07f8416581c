// Schema of a complete configuration: RAGEN's keys, plus the keys of RAGEN Workbench under `workbench`. An unknown key
// is an error. Descriptions appear in the documentation, hover texts and the JSON schema. The default values of verl's
// keys and of `workbench` are in media/presets/ppo_trainer.yaml. The default values of RAGEN's keys are in base.yaml.
// If neither file contains a key, the key's default value is in this schema. Further keys are in schema-policy.ts,
// schema-episodes.ts and schema-evaluation.ts. Rules between keys are in cross-checks.ts.
import { defaultKeyVariable } from '../../common/server-url';
import { z } from 'zod';
import { agentProxy, customEnvs, esManager } from './schema-episodes';
import { modelConfig, modelInfo, output } from './schema-evaluation';
import type { JsonSchema } from '../../common/json-schema';
import { once } from '../../common/once';
import { klKinds } from '../../algorithms/policy-loss-options';
import { devices } from '../../engine/session/devices';
import { contextMasks } from '../../algorithms/context-mask';
import { creditMasks } from '../../algorithms/credit-mask';
import { toolFormats } from '../../models/tokenizer/tool-syntax';
import { defaultToolLimits } from '../../protocol/tool-link';
import { alarmNames } from '../../run-data/alarm-rules';
import { curriculum } from './schema-curriculum';
import { distillation } from './schema-distillation';
import { pluginPath } from './plugin-path';
import { plugins } from './schema-plugins';
import { actorRolloutRef, count, critic, flag } from './schema-policy';
import { responseFilters } from './schema-response-filters';

const algorithm = z
  .strictObject({
    gamma: z.number().min(0).max(1).describe('Discount factor per token.'),
    lam: z.number().min(0).max(1).describe('λ of generalised advantage estimation.'),
    high_level_gamma: z.number().min(0).max(1).describe('Discount factor per turn in bi-level GAE.'),
    adv_estimator: z
      .union([
        z.enum([
          'gae',
          'grpo',
          'brpo',
          'arpo',
          'rloo',
          'opo',
          'tir_optimal_token_baseline',
          'reinforce_plus_plus',
          'reinforce_plus_plus_baseline',
          'remax',
        ]),
        pluginPath,
      ])
      .describe(
        'Advantage estimator. Only gae (PPO) uses a critic. The baseline of brpo is the mean score of the batch. The baseline of remax is the score of a greedy episode of the same prompt. The baseline of opo is the mean score of the group, weighted by length. tir_optimal_token_baseline has a baseline for each token, the mean return of the group at this token, weighted by the noise of the gradient so far. arpo has no baseline. A path names a plug-in that computes the advantages (docs/PLUGINS.md). The names of VAGEN (masked_gae, bi_level_gae, turn_wise_gae, no_concat_gae, no_concat_gae_last, masked_grpo) are gae or grpo with further settings (docs/environments/states.md).',
      ),
    bi_level_gae: flag('Compute GAE over turns, then over the tokens of each turn.'),
    norm_adv_by_std_in_grpo: flag(
      'Divide GRPO advantages by the standard deviation of the group; false gives Dr. GRPO.',
    ),
    use_kl_in_reward: flag('Subtract the KL divergence from the token rewards.'),
    kl_penalty: z.enum(klKinds).describe('Estimator of the KL divergence in the reward.'),
    kl_ctrl: z
      .strictObject({
        type: z.enum(['fixed', 'adaptive']).describe('Keep the KL coefficient fixed, or adapt it towards a target KL.'),
        kl_coef: z.number().min(0).describe('Weight of the KL divergence in the reward.'),
        horizon: z.number().positive().describe('Horizon of the adaptive controller, in episodes.'),
        target_kl: z.number().positive().describe('Target KL divergence of the adaptive controller.'),
      })
      .describe('Weight of the KL divergence in the reward.'),
    zero_task_advantage: flag(
      'Set all advantages to zero, for a control run in which only the regularisers change the weights.',
    ),
    soft_advantage_reweight: flag(
      "Multiply GRPO advantages by the ratio of the group's standard deviation to the largest standard deviation in the batch.",
    ),
    filter_groups: z
      .strictObject({
        enable: flag(
          'Dynamic sampling (DAPO): sample further batches until env_groups groups pass the rollout filter and have differing outcomes.',
        ),
        metric: z
          .enum(['acc', 'score', 'seq_reward'])
          .describe('Outcome that must differ within a group: success (acc), or the score (score, seq_reward).'),
        max_num_gen_batches: z
          .int()
          .min(0)
          .describe(
            'Maximum batches sampled per step. After this many batches, the step trains on the groups found so far. 0 means no limit.',
          ),
      })
      .describe('Dynamic sampling (DAPO): groups whose episodes all have the same outcome are replaced.'),
    rollout_correction: z
      .strictObject({
        bypass_mode: flag("Use the sampler's log-probs as old log-probs instead of recomputing them."),
        rollout_is: z
          .enum(['auto', 'token', 'sequence'])
          .nullable()
          .describe(
            'Truncated importance sampling: multiply the loss by the ratio of the probabilities in the training graph and in the sampler. The ratio is computed per token (token) or per episode (sequence). null turns importance sampling off. auto means token if the rollouts or the base weights are quantised to 8 bits, or if workbench.max_staleness is above 0; otherwise, auto means null.',
          ),
        rollout_is_threshold: z.number().positive().describe('Maximum importance weight.'),
      })
      .describe('Source of old log-probs, and correction for off-policy sampling.'),
  })
  .describe('Advantages and KL control.');

const rewardModel = z
  .strictObject({
    overlong_buffer: z
      .strictObject({
        enable: flag('Penalise responses close to response_length.'),
        len: count('Number of tokens before response_length over which the penalty grows from 0 to penalty_factor.'),
        penalty_factor: z.number().min(0).describe('Penalty of a response that reaches response_length.'),
      })
      .describe(
        'Overlong reward shaping (DAPO): a penalty for long responses. It is added to the other penalties of the turn.',
      ),
  })
  .describe('Changes to the reward of an episode.');

const rolloutManager = z
  .strictObject({
    use_loss_mask: flag("Train only on sampled tokens; VAGEN's name for enable_response_mask."),
    use_gae_mask: flag(
      'Estimate advantages over sampled tokens only. If false, estimate them over all tokens from the first to the last sampled token.',
    ),
  })
  .describe("VAGEN's two masks (TRICO).");

const trainer = z
  .strictObject({
    project_name: z.string().describe('Project that the run belongs to.'),
    experiment_name: z.string().min(1).describe('Name of the run.'),
    local_log_dir: z.string().describe('Folder of evaluation results, relative to the workspace.'),
    total_training_steps: z.int().min(0).describe('Training steps of the run; may be 0 if val_only is true.'),
    test_freq: z
      .int()
      .min(-1)
      .describe(
        'Steps between validations. 0 or -1 turns these validations off. Otherwise, a validation also runs after the last step.',
      ),
    save_freq: z
      .int()
      .min(-1)
      .describe(
        'Steps between checkpoints. A checkpoint is also saved at the end of the run. 0 or -1 saves only the checkpoint at the end.',
      ),
    val_before_train: flag('Validate before the first step.'),
    val_only: flag('Validate once and end.'),
    validation_steps: count('Rollout batches per validation.'),
    max_actor_ckpt_to_keep: count('Default value of workbench.keep_checkpoints.'),
    resume_mode: z
      .enum(['auto', 'disable', 'resume_path'])
      .describe(
        "Checkpoint from which a run continues. auto: ragen resume continues from the run's newest checkpoint. disable: ragen resume requires the name of a checkpoint. resume_path: a new run starts from a checkpoint of another run.",
      ),
    resume_from_path: z
      .string()
      .nullable()
      .describe(
        'Checkpoint folder from which the run starts if resume_mode is resume_path; relative to the workspace.',
      ),
    critic_warmup: z.int().min(0).describe('First step that updates the actor; earlier steps train only the critic.'),
    log_group_rv_table: flag(
      'Write the prompt groups of each step to diagnostics/groups-<step>.jsonl: scores, their standard deviation, and whether the group was kept.',
    ),
    gradient_analysis_mode: flag(
      'Measure the gradients of the loss and its parts, for buckets of groups with similar reward variance.',
    ),
    gradient_analysis_every: count('Steps between gradient measurements, starting at step 1.'),
    gradient_analysis_log_prefilter: flag(
      'Also measure the gradients of the complete rollout, before groups are filtered.',
    ),
    gradient_analysis_only: flag('Skip the optimizer step in steps that measure gradients.'),
    exit_after_gradient_analysis: flag('End the run after the first step that measured gradients.'),
    gradient_analysis_env_groups: count(
      "Prompt groups of a separate rollout for gradient measurement; null uses the step's rollout.",
    ).nullable(),
    gradient_analysis_group_size: count(
      'Group size of the separate rollout for gradient measurement; null uses the group size of training.',
    ).nullable(),
    logger: z
      .array(z.string())
      .describe(
        'Outputs for metrics. This list has no effect, because metrics are always written to the run folder. A note names each listed output except console.',
      ),
  })
  .describe('Steps, validation, checkpoints and logging of the run.');

const collapseDetection = z
  .strictObject({
    compute_freq: count('Interval, in steps, of the collapse diagnosis; the diagnosis also runs at step 1.'),
    micro_batch_size: count('Sequences per forward pass when each reasoning text is scored under each prompt.'),
    first_turn_enabled: flag('Score the reasoning of first turns under the first prompt of each sampled group.'),
    multi_turn_enabled: flag('Score the reasoning of randomly drawn turns under the contexts of all drawn turns.'),
    num_samples: count('Maximum reasoning texts per diagnosis; null means all.').nullable(),
  })
  .describe('Diagnosis of template collapse by mutual information (RAGEN-2).');

/**
 * Resources that a Ray job of a run reserves. Runs that are older than these keys use the defaults, so that they can
 * still be resumed.
 */
export const jobResources = {
  job_cpus: z
    .number()
    .min(0)
    .describe(
      'CPUs that a Ray job of the run reserves (docs/CLUSTER.md). Ray does not limit threads: set workbench.threads to the same number.',
    )
    .default(1),
  job_gpus: z.number().min(0).describe('GPUs that a Ray job of the run reserves; may be a fraction.').default(0),
  job_resources: z
    .record(z.string(), z.number().positive())
    .describe("Further resources that a Ray job of the run reserves, by the cluster's own names.")
    .default({}),
};

const workbench = z
  .strictObject({
    // Older runs lack the engine's keys in their stored configuration; the defaults keep these runs resumable.
    engine: z
      .enum(['local', 'tinker'])
      .describe(
        'Where the model runs: on this machine, or on a server that speaks the Tinker REST API, such as SkyRL (docs/ENGINES.md).',
      )
      .default('local'),
    engine_url: z.string().nullable().describe('URL of the Tinker server, such as https://host:8000.').default(null),
    engine_model: z
      .string()
      .nullable()
      .describe(
        "Name of the base model on the server; may be null if the server offers only one model. model_path is the folder of this model's tokenizer.",
      )
      .default(null),
    engine_api_key_env: z
      .string()
      .nullable()
      .describe(
        "Environment variable that holds the server's API key. If the variable is not set, or with null, no key is sent.",
      )
      .default(defaultKeyVariable),
    engine_requests: count('Maximum concurrent requests to the server.').default(256),
    engine_outage_s: count('Seconds for which a run waits for an unreachable server before the run fails.').default(
      600,
    ),
    max_staleness: z
      .int()
      .min(0)
      .describe(
        'Maximum age, in steps, of the weights that sample a rollout, relative to the weights that are trained on this rollout. With 0, sampling and training alternate. Above 0, later rollouts are sampled while a step trains; this needs a Tinker server that keeps published versions of the weights.',
      )
      .default(0),
    ...jobResources,
    device: z
      .enum(devices)
      .describe(
        'Device of the model. auto uses a GPU if the GPU is faster than the CPU and gives matching results; otherwise auto uses the CPU.',
      ),
    precision: z
      .enum(['float32', 'float16'])
      .describe(
        'Precision in which products of activations and weights are computed. The stored weights, attention, norms and losses are always float32. Use float16 on GPUs only.',
      ),
    rollout_quantization: z
      .enum(['none', 'int8'])
      .describe(
        'With int8, sampling computes matrix products with the frozen base weights in 8 bits (LoRA only). The training graph then computes the old log-probs.',
      ),
    base_quantization: z
      .enum(['none', 'int8'])
      .describe('With int8, the frozen base weights are stored in 8 bits while adapters are trained.'),
    try_longest_batch: flag(
      'Compute a gradient at maximum length before the first step, to detect insufficient memory early.',
    ),
    threads: z.int().min(0).describe('CPU threads of the model; 0 for one per core.'),
    live_edit: flag('Reload environment source files when they are saved: episodes that start later use the new code.'),
    check_types: flag(
      'Reject saved environment code that has type errors. Code that does not compile is always rejected.',
    ),
    async_rollout: flag(
      'Let episodes advance independently instead of waiting for the slowest episode in each turn. Results on the CPU do not change.',
    ),
    coverage: flag('Record line coverage of environment code. The code then takes about 2.5 times as long.'),
    step_timeout_ms: count(
      "Time limit of an environment's reset or step in milliseconds; an episode that exceeds the limit fails.",
    ),
    max_failed_episodes_share: z
      .number()
      .min(0)
      .max(1)
      .describe(
        "Maximum share of a batch's episodes that may fail because of their environment. If more episodes fail, a training run pauses, and an evaluation ends.",
      ),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    max_environment_memory_gb: z
      .number()
      .positive()
      .nullable()
      .describe(
        "Maximum memory in GiB of an environment process together with its child processes. If they use more, the episodes of this environment process fail. null means half of the machine's memory.",
      )
      .default(null),
    tools: z
      .strictObject({
        format: z
          .enum(toolFormats)
          .default('auto')
          .describe(
            'How the model writes tool calls. auto: as its chat template shows. hermes: JSON in <tool_call> tags (Qwen2.5, Qwen3). llama3: a JSON object, or code after <|python_tag|>. plain: as hermes, with the tools listed in the system message instead of by the template.',
          ),
        max_calls_per_turn: count(
          'Maximum tool calls of one response; further calls get an error as their result.',
        ).default(defaultToolLimits.max_calls_per_turn),
        max_calls: count('Maximum tool calls of an episode; further calls get an error as their result.').default(
          defaultToolLimits.max_calls,
        ),
        timeout_ms: count(
          'Time limit of the tool calls of one response together, in milliseconds; a call that has not returned by then has an error as its result.',
        ).default(defaultToolLimits.timeout_ms),
        max_result_characters: count('Maximum characters of a result; the rest is left out.').default(
          defaultToolLimits.max_result_characters,
        ),
      })
      .describe('Tools that an environment offers to the model (docs/environments/tool-calling.md).')
      // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
      .prefault({}),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    distillation: distillation.nullable().default(null),
    max_skipped_steps: z
      .int()
      .min(0)
      .describe(
        'Maximum number of consecutive steps that may be skipped because of non-finite numbers. One more skipped step ends the run.',
      ),
    compat: z
      .enum(['corrected', 'ragen'])
      .describe("With ragen, training reproduces RAGEN's quirks for comparison (docs/QUIRKS.md)."),
    early_stops: z
      .array(z.enum(['reward_variance_collapse', 'low_validation_success']))
      .describe(
        'Rules that end a run early. reward_variance_collapse: for 10 steps, the in-group standard deviation of rewards is below a tenth of its mean over the first 10 steps. low_validation_success: success is below 1 % in 5 consecutive validations.',
      ),
    high_level_lam: z
      .number()
      .min(0)
      .max(1)
      .nullable()
      .describe('λ per turn in bi-level GAE; null uses algorithm.lam.'),
    turn_value: z
      .enum(['end', 'start'])
      .describe(
        'Token whose value represents a turn in bi-level GAE: the last token (end) or the first token (start) of the turn.',
      ),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    turn_gae: z
      .enum(['off', 'first', 'last'])
      .describe(
        "GAE over turns instead of tokens: all tokens of a turn have the turn's advantage, and the critic is trained at one token of each turn, the first or the last (VAGEN's no_concat_gae, no_concat_gae_last and turn_wise_gae). Uses high_level_gamma and high_level_lam.",
      )
      .default('off'),
    collapse_turn_uniform: flag(
      'Also diagnose collapse on turns that are sampled uniformly from all turns of the rollout.',
    ),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    filter_by_tag: flag(
      'Let the rollout filter select among the groups of each environment (tag) separately, so that environments with large rewards do not displace others. rollout_filter_value and rollout_filter_selection_eps then apply to each environment. A filter of the workspace that selects groups itself is not affected.',
    ).default(false),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    credit_mask: z
      .union([z.enum(creditMasks), pluginPath])
      .describe(
        'Weights of advantages by the confidence with which tokens were sampled. A path names a plug-in that weighs the tokens (docs/PLUGINS.md). confident_turns: by the geometric mean of the probabilities of a turn. unsure_turns: by 1 minus this mean. deciding_tokens: only tokens whose probability was below 0.99.',
      )
      .default('none'),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    context_mask: z
      .enum(contextMasks)
      .describe(
        'Tokens of earlier responses that the model does not see, in rollouts and in training. past_thoughts: the thoughts of all earlier turns. unsure_thoughts: all of them but the one whose tokens were sampled with the highest mean probability.',
      )
      .default('none'),
    watch: z
      .strictObject({
        enabled: flag('Raise alarms when a run shows the signs of an Echo Trap (docs/METRICS.md).'),
        stop_on: z
          .array(z.union([z.enum(alarmNames), pluginPath]))
          .describe('Alarms that end the run: built-in names, and paths in workbench.plugins.alarms.'),
      })
      .describe('Alarms for reward deviation, gradients, entropy, repetition, lengths and invalid responses.'),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    answer_tag: z
      .enum(['answer', 'ans'])
      .describe(
        "Tag that encloses the answer in prompts and responses: <answer>, or <ans> as in RAGEN's first version. The chosen tag also replaces <answer> in instructions and states.",
      )
      .default('answer'),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    trajectory_filter: z
      .strictObject({
        strategy: z
          .enum(['none', 'top'])
          .describe(
            'Which episodes are used for training, of each group that has passed the rollout filter: "none" uses all episodes, "top" only the best.',
          ),
        value: z
          .number()
          .gt(0)
          .max(1)
          .describe(
            "If strategy is top: the share of the kept groups' episodes that is used for training. At least one episode is used.",
          ),
        metric: z
          .enum(['reward', 'score'])
          .describe(
            'If strategy is top: quantity by which episodes are ranked: the sum of their rewards (reward), or this sum plus penalties (score).',
          ),
        only_successful: flag(
          'If strategy is top: train on successful episodes only. If fewer episodes succeeded than the share selects, all successful episodes are used. If no episode succeeded, the step does not train.',
        ),
      })
      .describe('Filters single episodes; advantages are still computed over complete groups.')
      .default({ strategy: 'none', value: 0.25, metric: 'reward', only_successful: true }),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    curriculum: curriculum.nullable().default(null),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    response_filters: responseFilters.nullable().default(null),
    plugins,
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    tensorboard: flag('Also write the metrics as TensorBoard event files, to tensorboard/ in the run folder.').default(
      true,
    ),
    timeline_steps: z
      .int()
      .min(0)
      .describe(
        'Number of newest steps for which the timeline keeps single calls and episodes. For older steps, the timeline keeps only the seconds per lane, such as sampling or update.',
      )
      .default(100),
    timeline_every: z
      .int()
      .min(0)
      .describe(
        'The timeline also keeps single calls and episodes of every k-th step, where k is this number; 0 turns this off.',
      )
      .default(100),
    mlflow: z
      .string()
      .regex(/^https?:\/\/[^\s@?#]+$/, 'an http(s) URL without user or query')
      .nullable()
      .describe(
        'URL of an MLflow tracking server to which the run sends its metrics, such as http://127.0.0.1:5000; null sends nothing.',
      )
      .default(null),
    keep_checkpoints: count(
      'Number of newest checkpoints (weights, optimizer, random states) that are kept in the run folder.',
    ),
  })
  .describe('Settings without a RAGEN key.');

export const runConfigSchema = z
  .strictObject({
    seed: z
      .strictObject({
        train: z
          .int()
          .min(0)
          .describe('First seed of the training groups; each further batch uses the seeds that follow.'),
        val: z.int().min(0).describe('First seed of the validation groups; the same in every validation.'),
      })
      .describe('Seeds of the environments and of all random streams.'),
    micro_batch_size_per_gpu: count('Micro-batch size of actor and critic (their ppo_micro_batch_size_per_gpu).'),
    log_prob_micro_batch_size_per_gpu: count('Episodes per forward pass for old and reference log-probs.'),
    ppo_mini_batch_size: count('Mini-batch size: episodes per optimizer step.'),
    model_path: z
      .string()
      .min(1)
      .describe(
        'The model: the name of a bundled model (ragen-tiny, ragen-small or ragen-tiny-vision), a folder with config.json, tokenizer.json and *.safetensors, or organisation/name of a Hugging Face model. A Hugging Face model is downloaded once; append @revision to choose a branch, tag or commit.',
      ),
    enable_response_mask: flag(
      'Train only on sampled tokens. If false and context_window_mode is full, train on all tokens after the system message.',
    ),
    grpo_advantage_length_weight: flag(
      "Multiply each sample's GRPO advantages by the mean response length of the batch, divided by the sample's response length.",
    ),
    lora: z
      .strictObject({
        rank: z.int().min(0).describe('Rank of the adapters; 0 trains all weights.'),
        alpha: z.number().positive().describe('Scale of the adapters.'),
        dropout: z.number().min(0).lt(1).describe("Dropout on the adapters' inputs during training."),
        target_modules: z.union([z.string(), z.array(z.string())]).describe('Linear layers with adapters.'),
        exclude_modules: z
          .union([z.string(), z.array(z.string())])
          .nullable()
          .describe('Linear layers among target_modules without adapters; null for none.')
          .default(null),
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
          .describe("Additional variables of the model's chat template, such as enable_thinking or date_string."),
        min_pixels: z
          .int()
          .positive()
          .nullable()
          .default(null)
          .describe(
            "Vision-language models: minimum number of pixels; smaller pictures are enlarged. null: the model's own limit.",
          ),
        max_pixels: z
          .int()
          .positive()
          .nullable()
          .default(null)
          .describe(
            "Vision-language models: maximum number of pixels; larger pictures are reduced, which also reduces their image tokens. null: the model's own limit.",
          ),
      })
      .describe('Chat template and pictures.'),
    output,
    model_config: modelConfig.nullable(),
    model_info: modelInfo.nullable(),
    workbench,
  })
  .describe('Configuration of a run.');

/** A complete, valid configuration. */
export type RunConfig = z.infer<typeof runConfigSchema>;
/** Settings of one environment, `custom_envs.<tag>`. */
export type TagConfig = RunConfig['custom_envs'][string];

/** JSON schema of a complete configuration. It is made at the first call, because most processes do not need it. */
export const configJsonSchema = once(() => z.toJSONSchema(runConfigSchema, { io: 'input' }) as JsonSchema);
