// Schema of `evaluation.json` in a run folder: the part of an evaluation's summary that readers use. The trainer's
// EvaluationSummary (trainer/evaluation/evaluation-summary.ts) is the source.
import { z } from 'zod';

const estimateSchema = z.object({ mean: z.number(), low: z.number(), high: z.number() });

const successSchema = z.object({
  groups: z.number(),
  episodes: z.number(),
  success: estimateSchema.nullable(),
  pass_at: z.record(z.string(), estimateSchema),
});

export const evaluationSchema = z.object({
  run: z.string(),
  created: z.string(),
  group_size: z.number(),
  overall: successSchema,
  tags: z.record(z.string(), successSchema.extend({ failed_environments: z.number(), versions: z.array(z.string()) })),
  generated_tokens: z.number(),
  api: z.object({ input_tokens: z.number(), output_tokens: z.number(), cost: z.number().nullable() }).optional(),
  wall_s: z.number(),
});
export type Evaluation = z.infer<typeof evaluationSchema>;
export type EvaluatedSuccess = z.infer<typeof successSchema>;
