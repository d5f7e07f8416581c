// What a run's diagnostics leave in its folder, one JSON file a diagnosed step: enough to draw them and to compute them again.
import { z } from 'zod';
import { runFiles } from './run-folder';

const stepFile = (name: string, step: number): string =>
  `${runFiles.diagnostics}/${name}-${String(step).padStart(6, '0')}.json`;

/** `diagnostics/collapse-000005.json`. */
export const collapseFile = (step: number): string => stepFile('collapse', step);

/** A family of pairs of prompt and reasoning; the four keys with RAGEN's words are a case of `ragen algo collapse`. */
export const collapseFamilySchema = z.object({
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
  thresholds: z
    .object({ entropy: z.number(), informationShare: z.number() })
    .describe('from where on H(Z|X) in nats a token, and the share of ln N, count as high'),
  families: z.array(collapseFamilySchema),
});
export type CollapseDiagnosis = z.infer<typeof collapseDiagnosisSchema>;
