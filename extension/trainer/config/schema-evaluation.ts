// Schema of an evaluation: output files and the API model to evaluate, under RAGEN's keys (eval, evaluate_api_llm). API
// keys are never in the configuration: they come from the environment variable named here.
import { z } from 'zod';
import { count, flag } from './schema-policy';

export const output = z
  .strictObject({
    dir: z
      .string()
      .min(1)
      .nullable()
      .describe(
        "Folder of an evaluation's results, from the workspace's root; null for one of its own below trainer.local_log_dir.",
      ),
    filename: z
      .string()
      .regex(/^[^/\\]+$/, 'a file name without a folder')
      .describe('File of trajectories, as JSON lines; .pkl becomes .jsonl. The summary lies beside it.'),
    // The default keeps runs resumable that predate this key.
    format: z
      .enum(['jsonl', 'pkl'])
      .default('jsonl')
      .describe(
        "Form of the trajectories: JSON lines; pkl, Python's own, is not written: JSON lines take its place, with a note.",
      ),
    append_timestamp: flag("Put the evaluation's date and time into the file names."),
  })
  .describe('Results of ragen eval.');

export const modelConfig = z
  .strictObject({
    model_name: z.string().min(1).describe('Which entry of model_info plays.'),
    max_concurrency: count('Most requests at a time.'),
  })
  .describe('Model behind an API that an evaluation plays with, in place of model_path; null for none.');

const variableName = /^[A-Z_][A-Z0-9_]{0,63}$/;

export const apiModel = z.strictObject({
  provider_name: z
    .enum(['openai', 'deepseek', 'together', 'anthropic'])
    .describe('Whose protocol, address and key; openai with a base_url is any service that speaks its protocol.'),
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
    .describe('Goes into each request as it is: temperature, max_tokens, …'),
  system_message: z
    .enum(['keep', 'drop'])
    .nullish()
    .describe(
      'drop leaves the system message out, for models that refuse one; by default so for o1-mini, as in RAGEN.',
    ),
  timeout_s: z.number().positive().default(120).describe('A request that takes longer is tried again.'),
  max_retries: z.int().min(0).default(12).describe('Times that a request is tried again before the evaluation stops.'),
  price_per_million: z
    .strictObject({ input: z.number().min(0), output: z.number().min(0) })
    .nullish()
    .describe('Prices of a million tokens, for the cost in the summary.'),
});

export type ApiModel = z.infer<typeof apiModel>;

export const modelInfo = z.record(z.string(), apiModel).describe('Models behind APIs by name.');
