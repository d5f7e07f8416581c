// Sends the first requests to a server of the Tinker API, before anything is created on the server. Checks whether the
// server answers, whether its certificate is trusted, and whether it accepts the key. Finds out the server's name and
// models, and the duration of a round trip. No failed request is repeated. Every failure is reported as one sentence
// with the remedy.
import { performance } from 'node:perf_hooks';
import { Agent, request } from 'undici';
import { z } from 'zod';
import { bodyBytes } from '../../../envs/api/response-body';
import { jsonOrNothing } from '../../common/json';
import { UserError } from '../../common/user-error';
import { secrets } from '../../node/secrets';
import { explainFailure, type ConnectionError } from './connection-failures';
import { capabilitiesSchema } from './tinker-wire';

export interface GreetingOptions {
  /** URL without a trailing slash. */
  url: string;
  key: string | null;
  /** Name of the variable that contains the key; used in error messages. */
  keyName: string;
  /** Maximum milliseconds of one request. */
  timeoutMs: number;
  signal: AbortSignal;
}

/** What the first requests have found out about a server. */
export interface Greeting {
  server: { name: string; version: string } | null;
  key: 'accepted' | 'not checked' | 'none';
  models: { name: string; max_context_length: number | null }[];
  round_trip_ms: number;
  clock_difference_s: number | null;
}

/** Maximum bytes of an answer. */
const mostBytes = 2 ** 20;
/** Number of timed requests; the reported round trip is the median of their times. */
const roundTrips = 5;

const modelsSchema = capabilitiesSchema.extend({
  supported_models: z
    .array(z.looseObject({ model_name: z.string(), max_context_length: z.int().nullish() }))
    .default([]),
});
const rootSchema = z.looseObject({ name: z.string(), version: z.string() });

interface Reply {
  status: number;
  /** The parsed body; undefined if the body is not JSON. */
  json: unknown;
  /** Seconds by which the Date header is ahead of this machine's clock. */
  clockDifferenceS: number | null;
  ms: number;
}

/** Sends the first requests. @throws UserError with reason and remedy, if the server cannot be used */
export async function greetServer(options: GreetingOptions): Promise<Greeting> {
  const agent = new Agent({ connections: 1, pipelining: 1 });
  try {
    const { url, key } = options;
    const get = (path: string, withKey = true): Promise<Reply> => send(agent, options, path, withKey);
    const capabilities = await get('/api/v1/get_server_capabilities');
    const models = modelsSchema.safeParse(capabilities.json);
    if (capabilities.status === 401 || capabilities.status === 403)
      throw new UserError(
        key === null
          ? `engine: ${url} requires an API key: set the variable ${options.keyName} to the key`
          : `engine: ${url} refuses the key of ${options.keyName}: correct the key`,
      );
    if (capabilities.status !== 200 || !models.success)
      throw new UserError(
        `engine: ${url} is not a server of the Tinker API (status ${capabilities.status} for get_server_capabilities): correct the URL`,
      );
    const open = key !== null && (await get('/api/v1/get_server_capabilities', false)).status === 200;
    const healths: Reply[] = [];
    for (let i = 0; i < roundTrips; i++) healths.push(await get('/api/v1/healthz'));
    const root = rootSchema.safeParse((await get('/')).json);
    return {
      server: root.success ? { name: shown(root.data.name), version: shown(root.data.version) } : null,
      key: key === null ? 'none' : open ? 'not checked' : 'accepted',
      models: models.data.supported_models.map(({ model_name, max_context_length }) => ({
        name: model_name,
        max_context_length: max_context_length ?? null,
      })),
      round_trip_ms: median(healths.map(({ ms }) => ms)),
      clock_difference_s: healths.at(-1)!.clockDifferenceS,
    };
  } finally {
    await agent.destroy();
  }
}

async function send(
  agent: Agent,
  { url, key, timeoutMs, signal }: GreetingOptions,
  path: string,
  withKey: boolean,
): Promise<Reply> {
  const began = performance.now();
  try {
    const response = await request(`${url}${path}`, {
      dispatcher: agent,
      headers: { accept: 'application/json', ...(withKey && key !== null && { 'x-api-key': key }) },
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    const bytes = await bodyBytes(response, mostBytes);
    const ms = performance.now() - began;
    const date = Date.parse(String(response.headers.date));
    return {
      status: response.statusCode,
      json: jsonOrNothing(bytes.toString('utf8')),
      clockDifferenceS: Number.isNaN(date) ? null : Math.round((date - Date.now()) / 1000),
      ms,
    };
  } catch (error) {
    signal.throwIfAborted();
    throw new UserError(`engine: ${explainFailure(url, error as ConnectionError, timeoutMs)}`);
  }
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[values.length >> 1];

/** Prepares a text from the server for display: one line, without secrets, truncated. */
const shown = (text: string): string => secrets.text(text.replace(/\s+/g, ' ').trim()).slice(0, 80);
