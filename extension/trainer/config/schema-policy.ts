// Schema of the policy and its training: actor, reference policy, rollout, critic and optimizers. Keys are RAGEN's and
// verl's. The default values are in media/presets/ppo_trainer.yaml; therefore a key without `.optional()` or
// `.default()` is required in the composed configuration.
import { z } from 'zod';
import { pluginPath } from './plugin-path';
import { filterMetrics } from '../../algorithms/built-in-filters';
import { filterStrategies, filterTypes, topPModes } from '../../algorithms/group-selection';
import { klKinds, lossAggModes, lossModes } from '../../algorithms/policy-loss-options';

export const count = (about: string) => z.int().min(1).describe(about);
export const share = (about: string) => z.number().min(0).max(1).describe(about);
export const flag = (about: string) => z.boolean().describe(about);
const weight = (about: string) => z.number().min(0).describe(about);

const optimizer = z
  .strictObject({
    lr: z.number().positive().describe('Peak learning rate of AdamW.'),
    betas: z
      .tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)])
      .describe('Decay rates of the two moments of AdamW.'),
    eps: z.number().positive().describe('Term added to the denominator of AdamW.'),
    weight_decay: weight('Decoupled weight decay of AdamW.'),
    lr_warmup_steps: z
      .int()
      .min(-1)
      .describe('Steps over which the learning rate rises linearly from zero; 0 or -1 turns this warm-up off.'),
    lr_scheduler_type: z.enum(['constant', 'linear', 'cosine']).describe('Learning-rate schedule after warm-up.'),
    moments: z
      .enum(['float32', 'int8'])
      .describe("Storage format of AdamW's moments; int8 (blocks with one scale each) takes a quarter of the memory."),
    total_training_steps: z.int().min(0).describe('Steps over which a linear or cosine learning rate falls to zero.'),
  })
  .describe('AdamW optimizer.');

const model = z
  .strictObject({
    path: z.string().min(1).describe('Folder of the weights (see model_path).'),
    lora_rank: z.int().min(0).describe('Rank of the LoRA adapters; 0 trains all weights.'),
    lora_alpha: z.number().positive().describe('Scale of the LoRA adapters.'),
    lora_dropout: z
      .number()
      .min(0)
      .lt(1)
      .describe("Dropout on the inputs of the policy's adapters during training; those of a vision encoder have none."),
    target_modules: z
      .union([z.string(), z.array(z.string())])
      .describe(
        'Linear layers that get LoRA adapters: all of them (all-linear), a list of names, or a regular expression, as in PEFT.',
      ),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    exclude_modules: z
      .union([z.string(), z.array(z.string())])
      .nullable()
      .describe(
        'Linear layers among target_modules that get no adapters: a list of names, or a regular expression, as in PEFT; null for none.',
      )
      .default(null),
    lora_adapter_path: z
      .string()
      .nullable()
      .describe(
        "Folder of an initial adapter in PEFT format. The adapter's rank, alpha and layers replace lora_rank, lora_alpha and target_modules.",
      ),
    enable_gradient_checkpointing: z
      .union([z.boolean(), z.literal('auto')])
      .describe(
        'Recompute activations in the backward pass instead of storing them. This needs much less memory and about a third more time. auto recomputes activations of models with at least 100 million parameters.',
      ),
  })
  .describe('The initial weights, and the LoRA adapters to train.');

const batching = {
  ppo_mini_batch_size: count('Mini-batch size: episodes per optimizer step.'),
  ppo_micro_batch_size_per_gpu: count(
    'Micro-batch size, which must divide the mini-batch size. A forward and backward pass processes at most this number times max_model_len tokens.',
  ),
  ppo_max_token_len_per_gpu: count('Maximum tokens per forward and backward pass.'),
  ppo_epochs: count('PPO epochs: passes over one rollout batch.'),
  grad_clip: z
    .number()
    .positive()
    .describe('Maximum global norm of the gradients; larger gradients are scaled down to this norm.'),
  loss_agg_mode: z.enum(lossAggModes).describe('How token losses are aggregated.'),
};

const actor = z
  .strictObject({
    ...batching,
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    freeze_vision_tower: flag(
      'Vision-language models: keep the vision encoder and its projection as they are. If false, they are trained too: all their weights, or adapters on those of their layers that target_modules selects.',
    ).default(true),
    use_ref: flag('Load a reference policy; required for the KL loss.'),
    use_kl_loss: flag('Add the KL divergence from the reference policy to the loss.'),
    kl_loss_coef: weight('Weight of the KL loss.'),
    kl_loss_type: z
      .enum(klKinds)
      .describe('Estimator of the KL loss per token; kl means k1, mse means k2, and low_var_kl means k3.'),
    clip_ratio_low: share('The importance ratio is clipped below at 1 minus this value.'),
    clip_ratio_high: weight('The importance ratio is clipped above at 1 plus this value.'),
    clip_ratio_c: z
      .number()
      .gt(1)
      .describe(
        'Dual clip: maximum loss of a token with a negative advantage, as a multiple of the absolute advantage.',
      ),
    // Older runs lack these two keys in their stored configuration; the defaults keep these runs resumable.
    tau_pos: z
      .number()
      .positive()
      .describe('With loss_mode sapo: steepness of the gate for tokens with a positive advantage.')
      .default(1),
    tau_neg: z
      .number()
      .positive()
      .describe('With loss_mode sapo: steepness of the gate for all other tokens.')
      .default(1.05),
    policy_loss: z
      .strictObject({
        loss_mode: z
          .union([z.enum(lossModes), pluginPath])
          .describe(
            'What is clipped. vanilla: the importance ratio of each token, as in PPO. gspo: the importance ratio of the whole sequence. cispo: the weight of each log-prob. sapo: nothing; a smooth gate weighs the ratio of each token. geo_mean: the logarithm of the ratio of each token, whose mean over the sequence weighs the advantage (GMPO). clip_cov: the importance ratio of each token, and some tokens with a high covariance of log-prob and advantage are left out. kl_cov: nothing; the tokens with the highest covariance have a penalty on their change. A path names a plug-in that computes the loss (docs/PLUGINS.md).',
          ),
        // Older runs lack the keys below in their stored configuration; the defaults keep these runs resumable.
        clip_cov_ratio: share(
          'With loss_mode clip_cov: share of the sampled tokens that is left out; at least one token.',
        ).default(0.0002),
        clip_cov_lb: z
          .number()
          .describe('With loss_mode clip_cov: only tokens with a covariance above this value are left out.')
          .default(1),
        clip_cov_ub: z
          .number()
          .describe('With loss_mode clip_cov: only tokens with a covariance below this value are left out.')
          .default(5),
        kl_cov_ratio: share(
          'With loss_mode kl_cov: share of the sampled tokens that has the penalty; at least one token.',
        ).default(0.0002),
        ppo_kl_coef: weight(
          'With loss_mode kl_cov: weight of the penalty, the absolute log-ratio of the token.',
        ).default(0.1),
      })
      .describe('Form of the policy loss.'),
    entropy_coeff: weight('Weight of the entropy bonus.'),
    filter_loss_scaling: z
      .enum(['none', 'linear', 'sqrt'])
      .describe(
        'Multiply advantages by the share of groups that the rollout filter kept (linear), or by the square root of this share (sqrt).',
      ),
    grpo_advantage_length_weight: flag('Copy of the top-level key grpo_advantage_length_weight.'),
    optim: optimizer,
  })
  .describe('The policy and its update.');

const rollout = z
  .strictObject({
    max_model_len: count('Maximum tokens of an episode, including the prompt.'),
    response_length: count('Maximum response tokens per turn.'),
    temperature: z.number().positive().describe('Temperature of sampling, and of the log-probs in training.'),
    top_p: z.number().gt(0).max(1).describe('Nucleus sampling: probability mass to draw from; 1 is off.'),
    top_k: z.int().min(-1).describe('Top-k sampling: number of most likely tokens to sample from; -1 or 0 is off.'),
    min_p: share("Min-p sampling: drops tokens below this share of the top token's probability; 0 is off."),
    repetition_penalty: z
      .number()
      .positive()
      .describe(
        'Repetition penalty. For each token that occurred before, a positive logit is divided by this value, and a negative logit is multiplied by it. 1 is off.',
      ),
    stop: z.array(z.string().min(1)).describe('Stop strings that end a response, besides the end-of-turn token.'),
    do_sample: flag('Sample tokens; false decodes greedily.'),
    log_prob_micro_batch_size_per_gpu: count('Episodes per forward pass for old log-probs.'),
    rollout_filter_value: weight(
      'A share or a number that determines how many groups are kept. rollout_filter_strategy determines its meaning. With top_p, 1 keeps all groups.',
    ),
    rollout_filter_strategy: z
      .enum(filterStrategies)
      .describe(
        'How the rollout filter selects groups, and what rollout_filter_value means. top_p: the share of the summed score that the kept groups must reach. top_k: the share of groups to keep. top_k_abs: the number of groups to keep. min_p: the minimum score of a kept group, as a share of the best score.',
      ),
    rollout_filter_type: z.enum(filterTypes).describe('Keep the groups with the largest or the smallest score.'),
    rollout_filter_metric: z
      .union([z.enum(filterMetrics), pluginPath])
      .describe(
        'Score by which groups are filtered. As in RAGEN, reward_variance is the standard deviation of the episode scores. random selects groups by chance, for comparison. A path names a plug-in that scores the groups (docs/PLUGINS.md).',
      ),
    rollout_filter_include_zero: flag('Let the filter also keep groups with a score of zero.'),
    rollout_filter_top_p_prob_mode: z
      .enum(topPModes)
      .describe('How the strategy top_p converts scores to shares: linear or softmax.'),
    rollout_filter_selection_eps: weight(
      'Tolerance of the strategy top_p in linear mode: amount by which the summed score of the kept groups may fall short.',
    ),
    gradient_analysis_num_buckets: count(
      'Maximum number of buckets into which the gradient analysis divides the groups.',
    ),
    gradient_analysis_bucket_mode: z
      .enum(['quantile', 'fixed_rv'])
      .describe(
        'How groups are divided into buckets by the standard deviation of their scores. quantile: into buckets of similar size. fixed_rv: into buckets with the lower bounds 0, 1, 2, 3, 4 and 5.',
      ),
    rollout_filter_empty_stop_steps: z
      .int()
      .min(0)
      .describe(
        'End the run after this many consecutive steps in which the filter kept nothing; 0 turns this rule off.',
      ),
    val_kwargs: z
      .strictObject({
        do_sample: flag('Sample tokens in validation; false decodes greedily.'),
        temperature: weight('Temperature of sampling in validation.'),
        top_p: z.number().gt(0).max(1).describe('Nucleus sampling in validation; 1 is off.'),
        top_k: z.int().min(-1).describe('Top-k sampling in validation; -1 or 0 is off.'),
        min_p: share('Min-p sampling in validation; 0 is off.'),
        repetition_penalty: z.number().positive().describe('Repetition penalty in validation; 1 is off.'),
        logprobs: z
          .int()
          .min(0)
          .nullable()
          .describe(
            'Whether an evaluation computes the entropy of the responses: 0 means no, any other value means yes. The entropy is computed over the whole vocabulary; RAGEN computes it over this number of most likely tokens.',
          ),
      })
      .describe('Sampling in validation.'),
  })
  .describe('Sampling of episodes, and selection of the groups to train on.');

export const actorRolloutRef = z
  .strictObject({
    model,
    actor,
    ref: z
      .strictObject({
        log_prob_micro_batch_size_per_gpu: count('Episodes per forward pass for reference log-probs.'),
      })
      .describe('The reference policy: the weights the run started from.'),
    rollout,
  })
  .describe('Policy, reference policy and rollout.');

export const critic = z
  .strictObject({
    ...batching,
    model,
    cliprange_value: z
      .number()
      .positive()
      .describe('Clip range of the value loss: maximum difference between new and old value before clipping.'),
    optim: optimizer,
  })
  .describe('The value function; only used by adv_estimator gae.');
