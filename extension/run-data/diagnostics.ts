// Schemas of the files in `diagnostics/` of a run folder, one JSON file per diagnosed step. The files contain all
// inputs of the diagnosis metrics, so the metrics can be recomputed and the pages need no model.
import { z } from 'zod';
import { runFiles } from './run-file-names';

const stepFile = (name: string, step: number): string =>
  `${runFiles.diagnostics}/${name}-${String(step).padStart(6, '0')}.json`;

/** Returns the file name of a step's collapse diagnosis, such as `diagnostics/collapse-000005.json`. */
export const collapseFile = (step: number): string => stepFile('collapse', step);

/** Returns the file name of a step's gradient analysis, such as `diagnostics/gradients-000001.json`. */
export const gradientsFile = (step: number): string => stepFile('gradients', step);

/**
 * Schema of a gradient analysis: the gradient norm of each part of the loss for each bucket of prompt groups, and the
 * cosines between all these gradients.
 */
export const gradientAnalysisSchema = z.object({
  step: z.number().int(),
  analyses: z.array(
    z.object({
      name: z
        .string()
        .describe(
          'prefix of the metric keys: grad_norm, or grad_norm_prefilter for gradients of the unfiltered rollout',
        ),
      parts: z
        .array(z.string())
        .describe("names of the loss parts: always 'task', plus 'entropy' and 'kl' if the loss has these terms"),
      buckets: z.array(
        z.object({
          name: z.string().describe('name of the bucket: bucket_1 (lowest reward std), bucket_2, …, or all'),
          groups: z.array(z.object({ group_id: z.number().int(), reward_std: z.number() })),
          samples: z.number().int(),
          tokens: z.number().int().describe('number of trained tokens in the bucket'),
          gradients: z
            .array(z.object({ norm: z.number(), snr: z.number().nullable() }))
            .describe(
              'one entry per loss part, in the order of `parts`; snr is the squared norm of the mean gradient divided by the variance of the mean gradient',
            ),
          metrics: z.record(z.string(), z.number()).describe('metrics of the loss, averaged over mini-batches'),
        }),
      ),
      cosines: z
        .array(z.array(z.number().nullable()))
        .describe('entry [a·parts + p][b·parts + q] is the cosine between part p of bucket a and part q of bucket b'),
    }),
  ),
});
export type GradientAnalysisRecord = z.infer<typeof gradientAnalysisSchema>;

/**
 * Schema of the collapse diagnosis of one pair family (pair-sampling.ts). An object with only the keys
 * `log_probs_per_token`, `lengths`, `column` and `signatures` is valid input for `ragen algo collapse`.
 */
const collapseFamilySchema = z.object({
  name: z
    .string()
    .describe(
      'prefix of the metric keys: collapse_first_turn_sample, collapse_trajectory_sample or collapse_turn_sample',
    ),
  prompts: z
    .array(z.object({ text: z.string(), tokens: z.number().int() }))
    .describe('prompts; prompt j belongs to column j of `log_probs_per_token`'),
  samples: z
    .array(z.object({ episode: z.string(), group: z.number().int(), turn: z.number().int(), text: z.string() }))
    .describe('reasoning texts with their episode, group and turn; text i belongs to row i of `log_probs_per_token`'),
  log_probs_per_token: z
    .array(z.array(z.number()))
    .describe('entry [i][j] is the mean log-prob per token of reasoning text i after prompt j, in nats'),
  lengths: z.array(z.number().int()).describe('number of tokens of each reasoning text'),
  column: z
    .array(z.number().int())
    .describe('for each reasoning text, the index of the prompt after which it was sampled'),
  signatures: z.array(z.number().int()).describe('one number per prompt; equal prompts have equal numbers'),
  metrics: z.record(z.string(), z.number()).describe('metrics by key, without the prefix `name`'),
  regime: z.string().describe('diverse reasoning, compressed reasoning, template collapse or low-entropy collapse'),
});
export type CollapseFamily = z.infer<typeof collapseFamilySchema>;

export const collapseDiagnosisSchema = z.object({
  step: z.number().int(),
  model: z
    .string()
    .optional()
    .describe('model that scored the texts if it is not the policy that wrote them (model-scoring.ts)'),
  families: z.array(collapseFamilySchema),
});
export type CollapseDiagnosis = z.infer<typeof collapseDiagnosisSchema>;
