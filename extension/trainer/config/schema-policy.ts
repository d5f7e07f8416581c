// Schema of the policy and its training: actor, reference policy, rollout, critic and optimizers. Keys are RAGEN's and
// verl's. Defaults live in media/presets/ppo_trainer.yaml, so a key without `.optional()` or `.default()` must be in
// the configuration.
import { z } from 'zod';

export const count = (about: string) => z.int().min(1).describe(about);
const share = (about: string) => z.number().min(0).max(1).describe(about);
export const flag = (about: string) => z.boolean().describe(about);
const weight = (about: string) => z.number().min(0).describe(about);

export const lossAggregation = z.enum([
  'token-mean',
  'seq-mean-token-sum',
  'seq-mean-token-mean',
  'seq-mean-token-sum-norm',
]);

const optimizer = z
  .strictObject({
    lr: z.number().positive().describe('Peak learning rate of AdamW.'),
    betas: z
      .tuple([z.number().min(0).lt(1), z.number().min(0).lt(1)])
      .describe('Decay rates of the two moments of AdamW.'),
    eps: z.number().positive().describe('Term added to the denominator of AdamW.'),
    weight_decay: weight('Decoupled weight decay of AdamW.'),
    lr_warmup_steps: z.int().min(-1).describe('Steps of linear warm-up from zero; 0 or -1 for none.'),
    lr_scheduler_type: z.enum(['constant', 'linear', 'cosine']).describe('Course of the learning rate after warm-up.'),
    moments: z
      .enum(['float32', 'int8'])
      .describe("How AdamW's moments are held; int8 takes a quarter of the memory, in blocks with a scale each."),
    total_training_steps: z.int().min(0).describe('Steps over which a linear or cosine learning rate falls to zero.'),
  })
  .describe('AdamW optimizer.');

const model = z
  .strictObject({
    path: z.string().min(1).describe('Folder of the weights (see model_path).'),
    lora_rank: z.int().min(0).describe('Rank of the LoRA adapters; 0 trains all weights.'),
    lora_alpha: z.number().positive().describe('Scale of the LoRA adapters.'),
    lora_dropout: z.number().min(0).lt(1).describe("Share of an adapter's inputs that is left out while it trains."),
    target_modules: z
      .union([z.string(), z.array(z.string())])
      .describe("Linear layers that get LoRA adapters: all-linear, names, or a regular expression, as PEFT's."),
    lora_adapter_path: z
      .string()
      .nullable()
      .describe("Folder of an adapter in PEFT's form to begin with; its rank, scale and layers go before those here."),
    enable_gradient_checkpointing: z
      .union([z.boolean(), z.literal('auto')])
      .describe(
        "Compute a layer's activations again on the way back instead of keeping them: much less memory, about a third more time; auto from 100 million parameters on.",
      ),
  })
  .describe('Weights to start from.');

const batching = {
  ppo_mini_batch_size: count('Episodes of one optimizer step.'),
  ppo_micro_batch_size_per_gpu: count(
    'A forward and backward pass holds as many tokens as so many episodes of max_model_len, however many episodes that is; divides the mini-batch.',
  ),
  ppo_max_token_len_per_gpu: count('Most tokens of one forward and backward pass.'),
  ppo_epochs: count('Passes over one rollout batch.'),
  grad_clip: z.number().positive().describe('Gradients are scaled down to this global norm.'),
  loss_agg_mode: lossAggregation.describe('How token losses become one loss.'),
};

const actor = z
  .strictObject({
    ...batching,
    use_ref: flag('Keep a reference policy; needed for the KL loss.'),
    use_kl_loss: flag('Add the KL divergence from the reference policy to the loss.'),
    kl_loss_coef: weight('Weight of the KL loss.'),
    kl_loss_type: z
      .enum(['kl', 'k1', 'abs', 'mse', 'k2', 'low_var_kl', 'k3'])
      .describe('Estimator of the KL loss per token; kl is k1, mse is k2, low_var_kl is k3.'),
    clip_ratio_low: share('The importance ratio is clipped below at 1 minus this.'),
    clip_ratio_high: weight('The importance ratio is clipped above at 1 plus this.'),
    clip_ratio_c: z
      .number()
      .gt(1)
      .describe('Dual clip: bound on the loss of negative advantages, as a multiple of the advantage.'),
    policy_loss: z
      .strictObject({
        loss_mode: z
          .enum(['vanilla', 'gspo', 'cispo'])
          .describe(
            "Clip each token's ratio (PPO), that of its whole sequence (GSPO), or the weight of its log-prob (CISPO).",
          ),
      })
      .describe('Form of the policy loss.'),
    entropy_coeff: weight('Weight of the entropy bonus.'),
    filter_loss_scaling: z
      .enum(['none', 'linear', 'sqrt'])
      .describe('Scale advantages by the share of groups that the rollout filter kept, or by its square root.'),
    grpo_advantage_length_weight: flag("Copy of the root's grpo_advantage_length_weight."),
    optim: optimizer,
  })
  .describe('The policy and its update.');

const rollout = z
  .strictObject({
    max_model_len: count('Most tokens of a whole episode, prompt included.'),
    response_length: count('Most tokens the model may write in one turn.'),
    temperature: z.number().positive().describe('Temperature of sampling, and of the log-probs in training.'),
    top_p: z.number().gt(0).max(1).describe('Nucleus sampling: probability mass to draw from; 1 is off.'),
    top_k: z.int().min(-1).describe('Number of likeliest tokens to draw from; -1 or 0 is off.'),
    min_p: share('Tokens less likely than this share of the likeliest one are left out; 0 is off.'),
    repetition_penalty: z
      .number()
      .positive()
      .describe(
        'Logits of tokens that occurred before are divided by this where positive, multiplied where not; 1 is off.',
      ),
    stop: z.array(z.string().min(1)).describe('Texts that end an answer, besides the end of a turn.'),
    do_sample: flag('Sample tokens; false takes the likeliest.'),
    log_prob_micro_batch_size_per_gpu: count('Episodes of one forward pass for old log-probs.'),
    rollout_filter_value: weight('Threshold of the rollout filter; with top_p, 1 keeps all groups.'),
    rollout_filter_strategy: z
      .enum(['top_p', 'top_k', 'top_k_abs', 'min_p'])
      .describe(
        'Rollout filter: by share of the summed score, by share or number of groups, or by share of the best score.',
      ),
    rollout_filter_type: z
      .enum(['largest', 'smallest'])
      .describe('Keep the groups with the largest or the smallest score.'),
    rollout_filter_metric: z
      .enum([
        'reward_variance',
        'reward_std',
        'reward',
        'reward_sum',
        'length',
        'entropy',
        'entropy_variance',
        'entropy_std',
      ])
      .describe('Score of a group; reward_variance is, as in RAGEN, the standard deviation of its episode scores.'),
    rollout_filter_include_zero: flag('Let groups with a score of zero take part.'),
    rollout_filter_top_p_prob_mode: z
      .enum(['linear', 'softmax'])
      .describe('How top_p turns scores into shares: as they are, or by softmax.'),
    rollout_filter_selection_eps: weight('Slack of the linear top_p threshold.'),
    gradient_analysis_num_buckets: count('Most buckets of the gradient analysis, of like size.'),
    gradient_analysis_bucket_mode: z
      .enum(['quantile', 'fixed_rv'])
      .describe(
        'Buckets of groups by the deviation of their scores: of like size, or from 0, 1, 2, 3, 4 and 5 on (always six).',
      ),
    rollout_filter_empty_stop_steps: z
      .int()
      .min(0)
      .describe('The run ends after so many steps in a row in which the filter kept nothing; 0 never.'),
    val_kwargs: z
      .strictObject({
        do_sample: flag('Sample tokens in validation; false takes the likeliest.'),
        temperature: weight('Temperature of sampling in validation.'),
        top_p: z.number().gt(0).max(1).describe('Nucleus sampling in validation; 1 is off.'),
        top_k: z.int().min(-1).describe('Number of likeliest tokens in validation; -1 or 0 is off.'),
        min_p: share('Smallest share of the likeliest token in validation; 0 is off.'),
        repetition_penalty: z.number().positive().describe('Repetition penalty in validation; 1 is off.'),
        logprobs: z
          .int()
          .min(0)
          .nullable()
          .describe(
            '0 leaves the entropy of answers out of an evaluation; it is taken over the whole vocabulary and not, as in RAGEN, over so many of the likeliest tokens.',
          ),
      })
      .describe('Sampling in validation.'),
  })
  .describe('Sampling of episodes, and which of their groups are trained on.');

export const actorRolloutRef = z
  .strictObject({
    model,
    actor,
    ref: z
      .strictObject({
        log_prob_micro_batch_size_per_gpu: count('Episodes of one forward pass for reference log-probs.'),
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
      .describe('A new value may differ from the old one by this much before it is clipped.'),
    optim: optimizer,
  })
  .describe('The value function; used by adv_estimator gae alone.');
