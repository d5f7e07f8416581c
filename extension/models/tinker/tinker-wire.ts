// The requests and responses of the Tinker REST API that this engine uses (tinker SDK 0.24 to 0.38; SkyRL 0.3 is the
// reference server). Requests are plain objects; responses are parsed by schemas, which ignore additional keys. Tokens
// are counted from 0. At position t of a datum, the model predicts token t + 1 of the sequence from tokens 0 to t.
import { z } from 'zod';

/** A tensor as JSON; `data` contains its elements in one flat list. */
export interface TensorData {
  data: number[];
  dtype: 'int64' | 'float32';
  shape: [number];
}

/** A text input as token ids. */
export interface ModelInput {
  chunks: [{ type: 'encoded_text'; tokens: number[] }];
}

/** One training sequence: the input tokens, the target tokens, and, for each target token, the inputs of the loss. */
export interface Datum {
  model_input: ModelInput;
  loss_fn_inputs: Record<'target_tokens' | 'weights', TensorData> & Partial<Record<LossInput, TensorData>>;
}

/**
 * Inputs of a loss. A policy's loss needs the log-probs and advantages of tokens; a critic's loss needs the old values
 * and the returns of tokens.
 */
type LossInput = 'logprobs' | 'advantages' | 'values' | 'returns';

/** Returns the model input that consists of these token ids. */
export const modelInput = (tokens: number[]): ModelInput => ({ chunks: [{ type: 'encoded_text', tokens }] });

const floats = (data: ArrayLike<number>): TensorData => ({
  data: Array.from(data),
  dtype: 'float32',
  shape: [data.length],
});

/**
 * Returns the datum of a sequence. `weights` and the arrays in `inputs` have the same length as `ids`. The entries for
 * token 0 are omitted, because the model does not predict this token.
 */
export function datumOf(
  ids: ArrayLike<number>,
  weights: ArrayLike<number>,
  inputs: Partial<Record<LossInput, ArrayLike<number>>>,
): Datum {
  const tokens = Array.from(ids);
  const predicted = (values: ArrayLike<number>): TensorData => floats(Array.from(values).slice(1));
  const others = Object.entries(inputs).map(([name, values]) => [name, predicted(values)]);
  return {
    model_input: modelInput(tokens.slice(0, -1)),
    loss_fn_inputs: {
      target_tokens: { data: tokens.slice(1), dtype: 'int64', shape: [tokens.length - 1] },
      weights: predicted(weights),
      ...(Object.fromEntries(others) as Partial<Record<LossInput, TensorData>>),
    },
  };
}

export const capabilitiesSchema = z.looseObject({
  supported_models: z.array(z.looseObject({ model_name: z.string() })).default([]),
});

export const sessionSchema = z.looseObject({ session_id: z.string().min(1) });

/** The first answer to a request that the server executes later. */
export const pendingSchema = z.looseObject({ request_id: z.string().min(1), model_id: z.string().optional() });

/**
 * Answers of retrieve_future that contain no result. `notReadySchema`: the result is not computed yet. `failedSchema`:
 * the request failed. Twinkle and the official service report failures in this form.
 */
export const notReadySchema = z.looseObject({ type: z.literal('try_again') });
export const failedSchema = z.looseObject({ error: z.string(), category: z.string().nullish() });

export const createdSchema = z.looseObject({
  model_id: z.string().optional(),
  lora_config: z
    .looseObject({
      rank: z.int(),
      alpha: z.number().nullish(),
      train_attn: z.boolean().nullish(),
      train_mlp: z.boolean().nullish(),
      train_unembed: z.boolean().nullish(),
    })
    .nullish(),
});

/** An output of a model. Servers send null in place of NaN, because JSON has no NaN. */
const tensorSchema = z.looseObject({ data: z.array(z.number().nullable()) });

/** Result of `forward`. For each datum, it contains the log-probs of a policy or the values of a critic. */
export const forwardSchema = z.looseObject({
  loss_fn_outputs: z.array(z.looseObject({ logprobs: tensorSchema.optional(), values: tensorSchema.optional() })),
});

/** Result of `forward_backward`. Its content is not used. */
export const accumulatedSchema = z.looseObject({});

export const optimizedSchema = z.looseObject({ metrics: z.record(z.string(), z.number()).nullish() });

/** Result of publishing weights: the id of the sampling session that uses them. */
export const publishedSchema = z.looseObject({ sampling_session_id: z.string().min(1) });

export const loadedSchema = z.looseObject({});

export const savedSchema = z.looseObject({ path: z.string().min(1) });

const sequenceSchema = z.looseObject({
  stop_reason: z.string(),
  tokens: z.array(z.int().min(0)),
  logprobs: z.array(z.number().nullable()).nullish(),
});
export type SampledSequence = z.infer<typeof sequenceSchema>;

export const sampledSchema = z.looseObject({
  sequences: z.array(sequenceSchema),
  /** The log-prob of each prompt token; null or absent for the first token. */
  prompt_logprobs: z.array(z.number().nullable()).nullish(),
});
