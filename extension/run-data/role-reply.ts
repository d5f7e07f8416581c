// The reply of a model behind an API that plays a role (docs/environments/multi-agent.md), as stored in
// `role-replies.jsonl`.
import { z } from 'zod';

export const roleReplySchema = z.object({
  model: z.string().describe('name of the model in model_info'),
  text: z.string().describe('the reply'),
  finish: z.enum(['stop', 'length', 'content_filter']).describe('why the reply ended; only stop is played'),
  tokens: z.number().describe('input and output tokens of the request'),
  cost: z.number().describe('cost of these tokens by price_per_million; 0 if no prices are configured'),
});

/** A line of `role-replies.jsonl`. `key` is the sha256 of the request and, unless replies are shared, of its turn. */
export const roleReplyLineSchema = z.object({
  key: z.string(),
  account: z.string().describe('`<tag>/<role>`'),
  ...roleReplySchema.shape,
});
