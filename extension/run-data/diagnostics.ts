// Schemas of the files in `diagnostics/` of a run folder, one JSON file per diagnosed step. The files contain all
// inputs of the diagnosis metrics, so the metrics can be recomputed and the pages need no model.
import { z } from 'zod';
import { runFiles } from './run-files';

const stepFile = (name: string, step: number): string =>
  `${runFiles.diagnostics}/${name}-${String(step).padStart(6, '0')}.json`;

/** `diagnostics/collapse-000005.json`. */
export const collapseFile = (step: number): string => stepFile('collapse', step);

/** `diagnostics/gradients-000001.json`. */
export const gradientsFile = (step: number): string => stepFile('gradients', step);

/** Schema of a gradient analysis: norms and cosines of the gradient of each loss part, by bucket of prompt groups. */
export const gradientAnalysisSchema = z.object({
  step: z.number().int(),
  analyses: z.array(
    z.object({
      name: z
        .string()
        .describe("the metrics' prefix: grad_norm, or grad_norm_prefilter for the rollout before the filter"),
      parts: z.array(z.string()).describe('task, and entropy and kl where the loss has them'),
      buckets: z.array(
        z.object({
          name: z.string().describe('bucket_1 (least deviation) upwards, and all'),
          groups: z.array(z.object({ group_id: z.number().int(), reward_std: z.number() })),
          samples: z.number().int(),
          tokens: z.number().int().describe('trained tokens'),
          gradients: z
            .array(z.object({ norm: z.number(), snr: z.number().nullable() }))
            .describe('in the order of parts; snr is the squared norm of the mean over its variance'),
          metrics: z.record(z.string(), z.number()).describe("the loss's, averaged over mini-batches"),
        }),
      ),
      cosines: z
        .array(z.array(z.number().nullable()))
        .describe("between bucket a's part p and bucket b's part q at [a·parts + p][b·parts + q]"),
    }),
  ),
});
export type GradientAnalysisRecord = z.infer<typeof gradientAnalysisSchema>;

/**
 * Schema of one family's diagnosis. `log_probs_per_token`, `lengths`, `column` and `signatures` together are a valid
 * case of `ragen algo collapse`.
 */
const collapseFamilySchema = z.object({
  name: z
    .string()
    .describe("the metrics' prefix: collapse_first_turn_sample, collapse_trajectory_sample, collapse_turn_sample"),
  prompts: z.array(z.object({ text: z.string(), tokens: z.number().int() })).describe('the columns'),
  samples: z
    .array(z.object({ episode: z.string(), group: z.number().int(), turn: z.number().int(), text: z.string() }))
    .describe('the rows: reasoning texts, with where each comes from'),
  log_probs_per_token: z.array(z.array(z.number())).describe('mean log-prob of a token of row i after prompt j, nats'),
  lengths: z.array(z.number().int()).describe('tokens of each reasoning'),
  column: z.array(z.number().int()).describe("each reasoning's own prompt"),
  signatures: z.array(z.number().int()).describe('equal for equal prompts'),
  metrics: z.record(z.string(), z.number()).describe('by the suffixes of metrics.jsonl'),
  regime: z.string().describe('diverse reasoning, compressed reasoning, template collapse or low-entropy collapse'),
});
export type CollapseFamily = z.infer<typeof collapseFamilySchema>;

export const collapseDiagnosisSchema = z.object({
  step: z.number().int(),
  families: z.array(collapseFamilySchema),
});
export type CollapseDiagnosis = z.infer<typeof collapseDiagnosisSchema>;
