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
        'Results folder of an evaluation, relative to the workspace; null for a new folder below trainer.local_log_dir.',
      ),
    filename: z
      .string()
      .regex(/^[^/\\]+$/, 'a file name without a folder')
      .describe('File of trajectories, as JSON lines; .pkl becomes .jsonl. The summary is saved in the same folder.'),
    // Older runs lack this key in their stored configuration; the default keeps them resumable.
    format: z
      .enum(['jsonl', 'pkl'])
      .default('jsonl')
      .describe('Format of the trajectories; pkl is not supported and falls back to JSON lines, with a note.'),
    append_timestamp: flag("Append the evaluation's date and time to the file names."),
  })
  .describe('Results of ragen eval.');

export const modelConfig = z
  .strictObject({
    model_name: z.string().min(1).describe('Entry of model_info to evaluate.'),
    max_concurrency: count('Maximum concurrent requests.'),
  })
  .describe('API model to evaluate instead of model_path; null for none.');

const variableName = /^[A-Z_][A-Z0-9_]{0,63}$/;

export const apiModel = z.strictObject({
  provider_name: z
    .enum(['openai', 'deepseek', 'together', 'anthropic'])
    .describe(
      'Provider, which determines protocol, address and key; use openai with a base_url for any OpenAI-compatible service.',
    ),
  model_name: z.string().min(1).describe("The service's name of the model."),
  base_url: z
    .url({ protocol: /^https?$/ })
    .nullish()
    .describe("Address of the service; the provider's own by default."),
  api_key_env: z
    .string()
    .regex(variableName, 'the name of an environment variable in capitals')
    .nullish()
    .describe("Environment variable that holds the key; the provider's own (OPENAI_API_KEY, …) by default."),
  generation_kwargs: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('Copied unchanged into each request: temperature, max_tokens, …'),
  system_message: z
    .enum(['keep', 'drop'])
    .nullish()
    .describe(
      'With drop, requests omit the system message, because some models reject it. For o1-mini, drop is the default, as in RAGEN.',
    ),
  timeout_s: z.number().positive().default(120).describe('Timeout of a request in seconds, after which it is retried.'),
  max_retries: z.int().min(0).default(12).describe('Maximum retries of a request before the evaluation stops.'),
  price_per_million: z
    .strictObject({ input: z.number().min(0), output: z.number().min(0) })
    .nullish()
    .describe('Prices per million tokens, for the cost in the summary.'),
});

export type ApiModel = z.infer<typeof apiModel>;

export const modelInfo = z.record(z.string(), apiModel).describe('API models by name.');
