// A teacher behind an API: an entry of `model_info` whose service offers OpenAI's text completions with token ids as
// prompt, `echo` and `logprobs`, such as vLLM and SGLang. The service reads each sample and returns the log-probs of its
// tokens. References: docs.vllm.ai (Completions API); platform.openai.com/docs/api-reference/completions.
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { RunStopped } from '../../engine/run-stopped';
import { RequestSlots } from '../../models/tinker/request-slots';
import type { ApiModel } from '../config/schema-evaluation';
import { ApiClient, RequestRefused, type ApiClientOptions } from '../evaluation/api-client';
import { apiAddress, type ApiService } from '../evaluation/api-service';
import { requireTextOnly } from './teacher';
import type { ScoredSample, Teacher, TeacherOptions } from './teacher';

const completion = z.looseObject({
  choices: z
    .array(z.looseObject({ logprobs: z.looseObject({ token_logprobs: z.array(z.number().nullable()) }) }))
    .min(1),
});

/** Maximum concurrent requests. */
const concurrency = 16;
/** Maximum bytes of a reply, which has about a hundred bytes for each token of the sample. */
const mostBytes = 2 ** 25;

/**
 * @param pauseMs pauses between attempts, for tests
 * @throws UserError if the key is missing
 */
export function openApiTeacher(
  { config, control }: Pick<TeacherOptions, 'config' | 'control'>,
  environment: Readonly<Record<string, string | undefined>> = process.env,
  pauseMs?: ApiClientOptions['pauseMs'],
): Teacher {
  const name = config.workbench.distillation!.service!;
  const model = config.model_info![name];
  const service = completionsWithLogprobs(name, model, environment);
  const closed = new AbortController();
  return {
    logprobs: async (samples, onPass) => {
      requireTextOnly(samples, 'workbench.distillation.service');
      const failed = new AbortController(); // after a failure, the other samples are not requested any more
      const signal = AbortSignal.any([control.stopped, closed.signal, failed.signal]);
      const client = new ApiClient(service, {
        timeoutMs: model.timeout_s * 1000,
        maxRetries: model.max_retries,
        mostBytes,
        pauseMs,
        consequence: 'start the service and resume the run',
        signal,
      });
      const slots = new RequestSlots(concurrency);
      let done = 0;
      const score = async ({ ids, mask }: ScoredSample): Promise<Float32Array> => {
        const { logprobs } = await slots.run(() => {
          signal.throwIfAborted();
          return client.ask([...ids]);
        });
        const found = sampledLogprobs(logprobs, mask, `model_info.${name}`);
        if (++done < samples.length) onPass(done, samples.length);
        return found;
      };
      onPass(0, samples.length);
      try {
        return await Promise.all(samples.map(score));
      } catch (error) {
        failed.abort();
        if (control.stopped.aborted) throw new RunStopped();
        if (error instanceof RequestRefused)
          throw new UserError(
            `api: the teacher model_info.${name} refuses a sample (${error.message}): use a service whose completions accept token ids with echo and logprobs, and whose context is at least max_model_len`,
          );
        throw error;
      }
    },
    close: () => Promise.resolve(closed.abort()),
  };
}

/** The service's text completions, which read the token ids of a sample and return a log-prob for each. */
function completionsWithLogprobs(
  name: string,
  model: ApiModel,
  environment: Readonly<Record<string, string | undefined>>,
): ApiService<readonly number[], { logprobs: (number | null)[] }> {
  const { root, secret } = apiAddress(name, model, environment);
  return {
    url: `${root}/completions`,
    headers: { authorization: `Bearer ${secret}` },
    secret,
    // One token must be sampled, because some services refuse 0; its log-prob is the last one and is not used.
    body: ids => ({
      model: model.model_name,
      prompt: ids,
      max_tokens: 1,
      echo: true,
      logprobs: 1,
      temperature: 1,
    }),
    read: reply => ({ logprobs: completion.parse(reply).choices[0].logprobs.token_logprobs }),
  };
}

/**
 * Returns the log-probs at tokens with mask 1, and 0 elsewhere.
 * @param found one log-prob for each token of the sample; a service may append those of the tokens that it sampled
 * @throws UserError if the reply lacks one of them
 */
export function sampledLogprobs(found: readonly (number | null)[], mask: Uint8Array, name: string): Float32Array {
  const missing = (at: number): UserError =>
    new UserError(
      `api: the teacher ${name} returned ${found.length} log-probs for a sample of ${mask.length} tokens, without one for token ${at}: use a service that returns the log-probs of the prompt (echo with logprobs)`,
    );
  if (found.length < mask.length) throw missing(found.length); // the service may have left out tokens at the beginning
  return Float32Array.from(mask, (own, t) => {
    if (own === 0) return 0;
    const logprob = found[t];
    if (logprob === null) throw missing(t);
    return logprob;
  });
}
