// The judgement of an episode by a model behind an API, as stored in an episode and in `judgements.jsonl`.
import { z } from 'zod';

export const judgementSchema = z.object({
  model: z.string().describe('name of the model in model_info'),
  score: z.number().nullable().describe('score from 0 to 1; null if the judge gave none'),
  text: z.string().describe('reply of the judge, or the reason why it gave no score'),
  cached: z.boolean().describe('whether the reply was known from an earlier request with the same content'),
  tokens: z.number().describe('input and output tokens of the request; 0 if none was sent or the reply was cached'),
  cost: z.number().describe('cost of these tokens by price_per_million; 0 if no prices are configured'),
});
export type Judgement = z.infer<typeof judgementSchema>;

/** A line of `judgements.jsonl`: a reply that was paid for. `key` is the sha256 of the request. */
export const judgementLineSchema = z.object({
  key: z.string(),
  account: z.string().describe('`<tag>/<component>`'),
  ...judgementSchema.omit({ cached: true }).shape,
});
export type JudgementLine = z.infer<typeof judgementLineSchema>;
