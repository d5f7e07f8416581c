// The requests that the Tinker peer (tinker-peer.ts) accepts, and their data in the form of its models.
import { z } from 'zod';
import type { BigramDatum } from './bigram-model';
import type { CriticDatum } from './linear-critic';

const numbers = z.object({ data: z.array(z.number()) });
const inputSchema = z.object({ chunks: z.tuple([z.object({ tokens: z.array(z.int()) })]) });
const batchOf = <T extends z.ZodRawShape>(shape: T) =>
  z.object({ data: z.array(z.object({ model_input: inputSchema, loss_fn_inputs: z.object(shape) })) });

const policySchema = batchOf({
  target_tokens: numbers,
  weights: numbers,
  logprobs: numbers,
  advantages: numbers,
});
const criticSchema = batchOf({
  target_tokens: numbers,
  weights: numbers,
  values: numbers.default({ data: [] }),
  returns: numbers.default({ data: [] }),
});

const lossSchema = z.object({
  loss_fn: z.enum(['cross_entropy', 'importance_sampling', 'ppo_critic']),
  loss_fn_config: z.strictObject({ value_clip: z.number().optional() }).optional(),
});
/** The loss of a request. */
export const lossOf = (given: unknown): z.infer<typeof lossSchema> => lossSchema.parse(given);

export const sampleSchema = z.object({
  prompt: inputSchema,
  sampling_params: z.object({
    max_tokens: z.int(),
    seed: z.int().max(2 ** 31 - 1),
    stop: z.array(z.int()),
    temperature: z.number(),
  }),
  sampling_session_id: z.string(),
});

export const adamSchema = z.object({
  learning_rate: z.number(),
  beta1: z.number(),
  beta2: z.number(),
  eps: z.number(),
  weight_decay: z.number(),
});

/** The data of a policy's request. */
export function dataOf(given: unknown): BigramDatum[] {
  const { data } = policySchema.parse(given);
  return data.map(({ model_input, loss_fn_inputs: { target_tokens, weights, logprobs, advantages } }) => ({
    input: model_input.chunks[0].tokens,
    targets: target_tokens.data,
    weights: weights.data,
    logprobs: logprobs.data,
    advantages: advantages.data,
  }));
}

/** The data of a critic's request. */
export function criticDataOf(given: unknown): CriticDatum[] {
  const { data } = criticSchema.parse(given);
  return data.map(({ model_input, loss_fn_inputs: { weights, values, returns } }) => ({
    input: model_input.chunks[0].tokens,
    weights: weights.data,
    values: values.data,
    returns: returns.data,
  }));
}
