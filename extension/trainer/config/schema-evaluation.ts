// Schema of an evaluation: output files and the API model to evaluate, under RAGEN's keys (eval, evaluate_api_llm). The
// configuration never contains an API key, only the name of the environment variable that holds the key.
import { z } from 'zod';
import { count, flag } from './schema-policy';

export const output = z
  .strictObject({
    dir: z
      .string()
      .min(1)
      .nullable()
      .describe(
        'Results folder of an evaluation, relative to the workspace; null creates a new folder below trainer.local_log_dir.',
      ),
    filename: z
      .string()
      .regex(/^[^/\\]+$/, 'a file name without a folder')
      .describe(
        'Name of the file to which trajectories are written as JSON lines. An extension .pkl is replaced by .jsonl. The summary is saved in the same folder.',
      ),
    // Older runs lack this key in their stored configuration; the default keeps these runs resumable.
    format: z
      .enum(['jsonl', 'pkl'])
      .default('jsonl')
      .describe(
        'Format of the trajectory file. pkl is not supported; with pkl, JSON lines are written and a note is shown.',
      ),
    append_timestamp: flag("Append the evaluation's date and time to the file names."),
  })
  .describe('Results of ragen eval.');

export const modelConfig = z
  .strictObject({
    model_name: z.string().min(1).describe('Name in model_info of the model to evaluate.'),
    max_concurrency: count('Maximum concurrent requests.'),
  })
  .describe('The API model to evaluate. If null, the model of model_path is evaluated.');

const variableName = /^[A-Z_][A-Z0-9_]{0,63}$/;

export const apiModel = z.strictObject({
  provider_name: z
    .enum(['openai', 'deepseek', 'together', 'anthropic'])
    .describe(
      'Provider of the model, which determines protocol, address and key. For any other OpenAI-compatible service, use openai and set base_url.',
    ),
  model_name: z.string().min(1).describe('Name by which the service knows the model.'),
  base_url: z
    .url({ protocol: /^https?$/ })
    .nullish()
    .describe("Address of the service; null uses the provider's address."),
  api_key_env: z
    .string()
    .regex(variableName, 'the name of an environment variable in capitals')
    .nullish()
    .describe(
      "Environment variable that holds the API key; null uses the provider's variable, such as OPENAI_API_KEY.",
    ),
  generation_kwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Parameters, such as temperature and max_tokens, that are copied unchanged into each request.'),
  system_message: z
    .enum(['keep', 'drop'])
    .nullish()
    .describe(
      'keep sends the system message; drop omits it, because some models reject it. For o1-mini, drop is the default, as in RAGEN.',
    ),
  timeout_s: z.number().positive().default(120).describe('Seconds after which a request without an answer is retried.'),
  max_retries: z.int().min(0).default(12).describe('Maximum retries of a request before the evaluation stops.'),
  price_per_million: z
    .strictObject({ input: z.number().min(0), output: z.number().min(0) })
    .nullish()
    .describe('Prices per million tokens, from which the cost in the summary is computed.'),
});

export type ApiModel = z.infer<typeof apiModel>;

export const modelInfo = z.record(z.string(), apiModel).describe('API models by name.');
