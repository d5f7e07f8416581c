// Schema of on-policy distillation (docs/DISTILLATION.md). The names of the coefficients are those of tinker-cookbook.
import { z } from 'zod';
import { defaultKeyVariable } from '../../common/server-url';
import { flag } from './schema-policy';

export const distillation = z
  .strictObject({
    teacher: z
      .string()
      .min(1)
      .nullable()
      .describe(
        "Model that scores the policy's tokens on this machine: a bundled model, a folder or a Hugging Face model, as for model_path. Its vocabulary must contain the policy's.",
      )
      .default(null),
    service: z
      .string()
      .min(1)
      .nullable()
      .describe(
        'Name in model_info of a service that scores them instead: text completions with token ids, echo and logprobs, such as vLLM.',
      )
      .default(null),
    server: z
      .strictObject({
        url: z.string().min(1).describe('URL of the server, such as https://host:8000.'),
        model: z
          .string()
          .min(1)
          .nullable()
          .describe('Name of the model on the server; may be null if the server offers only one model.')
          .default(null),
        api_key_env: z
          .string()
          .nullable()
          .describe(
            "Environment variable that holds the server's API key. If the variable is not set, or with null, no key is sent.",
          )
          .default(defaultKeyVariable),
      })
      .nullable()
      .describe('A server of the Tinker API whose base model scores them instead.')
      .default(null),
    kl_penalty_coef: z
      .number()
      .positive()
      .describe("Factor of the divergence from the teacher in the tokens' advantages.")
      .default(1),
    kl_discount_factor: z
      .number()
      .min(0)
      .max(1)
      .describe("Discount of the divergences of later tokens; with 0, an advantage contains only the token's own.")
      .default(0),
    use_rewards: flag(
      'Add the advantages of algorithm.adv_estimator. If false, the policy learns only from the teacher.',
    ).default(true),
  })
  .describe('On-policy distillation: the policy learns from the log-probs of a teacher on its own episodes.');

/** Settings of on-policy distillation, `workbench.distillation`. */
export type DistillationSettings = z.infer<typeof distillation>;
