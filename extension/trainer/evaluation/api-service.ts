// The two API protocols: OpenAI's chat completions (also DeepSeek, Together, vLLM, llama.cpp and others) and
// Anthropic's messages. Converts a conversation to a request, and a reply to an answer, but sends no requests.
// References: platform.openai.com/docs/api-reference/chat, docs.anthropic.com/en/api/messages. Not tested against the
// real services.
import { z } from 'zod';
import { UserError } from '../../common/user-error';
import { secrets } from '../../node/secrets';
import type { RunConfig } from '../config/schema';
import type { ApiModel } from '../config/schema-evaluation';
import { anthropicMessage, completionsMessage, plainText, refusesImages, type ApiMessage } from './api-images';

/** A configured service, with its key. By default, it answers conversations. */
export interface ApiService<Question = readonly ApiMessage[], Answer extends object = ApiAnswer> {
  url: string;
  headers: Record<string, string>;
  /** The API key; it must never be shown. */
  secret: string;
  body(question: Question): Record<string, unknown>;
  /** Converts a reply to an answer. Throws if the reply does not follow the protocol. */
  read(reply: unknown): Answer;
  /**
   * Returns a remedy if an error text of the service says that it can answer no such question at all; undefined if only
   * this question is refused.
   */
  remedyFor?(errorText: string, question: Question): string | undefined;
}

export interface ApiAnswer {
  text: string;
  /** `stop`, `length` (cut at the token limit) or `content_filter` (refused). */
  finish: 'stop' | 'length' | 'content_filter';
  usage: ApiUsage;
}

/**
 * Token counts as reported by the service. The count of input tokens covers the complete prompt, including cached
 * tokens.
 */
export interface ApiUsage {
  input_tokens: number;
  output_tokens: number;
}

const providers = {
  openai: { base: 'https://api.openai.com/v1', key: 'OPENAI_API_KEY' },
  deepseek: { base: 'https://api.deepseek.com/v1', key: 'DEEPSEEK_API_KEY' },
  together: { base: 'https://api.together.xyz/v1', key: 'TOGETHER_API_KEY' },
  anthropic: { base: 'https://api.anthropic.com', key: 'ANTHROPIC_API_KEY' },
} as const;

/**
 * Returns the model that `model_config` selects from `model_info`, with its service.
 * @throws UserError if `model_info` has no such entry, or if a context mask is set; also the errors of `apiService`
 */
export function configuredModel(
  { model_config, model_info, actor_rollout_ref, workbench }: RunConfig,
  environment: Readonly<Record<string, string | undefined>>,
): { model: ApiModel; service: ApiService } {
  const name = model_config?.model_name ?? '';
  const known = model_info ?? {};
  const names = Object.keys(known);
  if (!Object.hasOwn(known, name))
    throw new UserError(
      `config: model_config.model_name is ${JSON.stringify(name)}, which model_info does not have: ${names.length > 0 ? `use one of ${names.join(', ')}` : 'add it to model_info'}`,
    );
  if (workbench.context_mask !== 'none')
    throw new UserError(
      `config: workbench.context_mask is ${workbench.context_mask}, but a model behind an API returns no tokens to leave out: set it to none`,
    );
  const limit = actor_rollout_ref.rollout.response_length;
  return { model: known[name], service: apiService(name, known[name], limit, environment) };
}

/**
 * Returns the service of an entry of `model_info`.
 * @param name name of the entry, for messages
 * @param limit maximum tokens of a response, used if the protocol requires a limit and `generation_kwargs` sets none
 * @param environment environment variables that hold the keys
 * @throws UserError if the key is missing, or the address contains a secret
 */
export function apiService(
  name: string,
  model: ApiModel,
  limit: number,
  environment: Readonly<Record<string, string | undefined>>,
): ApiService {
  const { root, secret } = apiAddress(name, model, environment);
  return model.provider_name === 'anthropic'
    ? anthropic(root, secret, model, limit)
    : chatCompletions(root, secret, model);
}

/**
 * Returns the base address (without a slash at its end) and the key of an entry of `model_info`; parameters and errors
 * as for `apiService`.
 */
export function apiAddress(
  name: string,
  model: ApiModel,
  environment: Readonly<Record<string, string | undefined>>,
): { root: string; secret: string } {
  const { base, key } = providers[model.provider_name];
  const variable = model.api_key_env ?? key;
  const address = new URL(model.base_url ?? base);
  if (address.username !== '' || address.password !== '' || address.search !== '' || address.hash !== '')
    throw new UserError(
      `config: model_info.${name}.base_url contains a user, a password or parameters, which would be saved in the run folder: give only the address, and put the key into the environment variable ${variable}`,
    );
  secrets.name(variable);
  const secret = environment[variable]?.trim();
  if (!secret)
    throw new UserError(
      `config: model_info.${name} needs an API key of ${model.provider_name}: set the environment variable ${variable}`,
    );
  if (!/^[\x21-\x7e]+$/.test(secret))
    throw new UserError(
      `environment: ${variable} contains a blank or an invalid character: set it to the API key alone`,
    );
  return { root: address.href.replace(/\/+$/, ''), secret };
}

/** Whether the system message is left out of requests to this model. */
const drops = ({ system_message, model_name }: ApiModel): boolean =>
  (system_message ?? (/^o1-mini/.test(model_name) ? 'drop' : 'keep')) === 'drop';

const remedyForImages = (errorText: string, messages: readonly ApiMessage[]): string | undefined =>
  messages.some(({ content }) => typeof content !== 'string') && refusesImages(errorText)
    ? 'the conversation has pictures, and this model reads none, so choose a model that reads pictures in model_config.model_name, or configure observations without pictures'
    : undefined;

const completion = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        message: z.looseObject({ content: z.string().nullish(), refusal: z.string().nullish() }),
        finish_reason: z.string().nullish(),
      }),
    )
    .min(1),
  usage: z.looseObject({ prompt_tokens: z.number(), completion_tokens: z.number() }).nullish(),
});

function chatCompletions(root: string, secret: string, model: ApiModel): ApiService {
  return {
    url: `${root}/chat/completions`,
    headers: { authorization: `Bearer ${secret}` },
    secret,
    body: messages => ({
      ...model.generation_kwargs,
      model: model.model_name,
      messages: messages.filter(({ role }) => role !== 'system' || !drops(model)).map(completionsMessage),
    }),
    remedyFor: remedyForImages,
    read: reply => {
      const { choices, usage } = completion.parse(reply);
      const [{ message, finish_reason }] = choices;
      const refused = finish_reason === 'content_filter' || Boolean(message.refusal);
      return {
        text: secrets.text(message.content ?? ''), // because later requests contain the text
        finish: refused ? 'content_filter' : finish_reason === 'length' ? 'length' : 'stop',
        usage: { input_tokens: usage?.prompt_tokens ?? 0, output_tokens: usage?.completion_tokens ?? 0 },
      };
    },
  };
}

const messageReply = z.looseObject({
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
  stop_reason: z.string().nullish(),
  usage: z.looseObject({
    input_tokens: z.number(),
    output_tokens: z.number(),
    cache_creation_input_tokens: z.number().nullish(),
    cache_read_input_tokens: z.number().nullish(),
  }),
});

function anthropic(root: string, secret: string, model: ApiModel, limit: number): ApiService {
  return {
    url: `${root}/v1/messages`,
    headers: { 'x-api-key': secret, 'anthropic-version': '2023-06-01' },
    secret,
    body: messages => {
      const system = messages.flatMap(({ role, content }) => (role === 'system' ? [plainText(content)] : []));
      return {
        max_tokens: limit,
        ...model.generation_kwargs,
        model: model.model_name,
        ...(system.length > 0 && !drops(model) && { system: system.join('\n') }),
        messages: messages.filter(({ role }) => role !== 'system').map(anthropicMessage),
      };
    },
    remedyFor: remedyForImages,
    read: reply => {
      const { content, stop_reason, usage } = messageReply.parse(reply);
      const { input_tokens, output_tokens, cache_creation_input_tokens: made, cache_read_input_tokens: read } = usage;
      return {
        text: secrets.text(
          content.flatMap(({ type, text }) => (type === 'text' && text !== undefined ? [text] : [])).join(''),
        ),
        finish: stop_reason === 'refusal' ? 'content_filter' : isCut(stop_reason) ? 'length' : 'stop',
        usage: { input_tokens: input_tokens + (made ?? 0) + (read ?? 0), output_tokens },
      };
    },
  };
}

const isCut = (reason: string | null | undefined): boolean =>
  reason === 'max_tokens' || reason === 'model_context_window_exceeded';
