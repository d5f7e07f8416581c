// An environment that runs on a server, through OpenEnv's protocol or VAGEN's GymService. The server computes states
// and rewards; `remote-episode.ts` retries requests and replays episodes whose session is lost.
import { z } from 'zod';
import { defineEnvironment, MissingDependency, type ActionLookup, type StepResult } from '../api/environment';
import { gymServicePeer } from './gym-service-client';
import { openEnvPeer } from './openenv-client';
import { recordOf, type PeerOptions, type RemoteDescription, type RemotePeer, type RemoteState } from './peer';
import { RemoteEpisode, waitBefore } from './remote-episode';

/** Configuration keys of all environments that run on a server. */
export const serverKeys = {
  protocol: z.enum(['openenv', 'gym_service']).default('openenv'),
  url: z
    .url({ protocol: /^https?$/ })
    .default('http://127.0.0.1:8000')
    .describe('base address of the server'),
  api_key_env: z
    .string()
    .regex(/^[A-Z_][A-Z0-9_]{0,63}$/, 'expected the name of an environment variable, in capital letters')
    .nullable()
    .default(null)
    .describe('name of the environment variable that contains the API key; null: no key is sent'),
  timeout: z.number().positive().default(120).describe('seconds to wait for a response'),
  connect_timeout: z.number().positive().default(10).describe('seconds to wait for a connection'),
  retries: z.int().min(0).default(8).describe('maximum number of retries per request'),
  backoff: z.number().min(0).default(2).describe('seconds before the first retry; doubles with each further retry'),
};
export type ServerConfig = { [Key in keyof typeof serverKeys]: z.infer<(typeof serverKeys)[Key]> };

const config = z.strictObject({
  ...serverKeys,
  env_config: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('configuration of the environment, sent to the server'),
  instruction: z
    .string()
    .nullable()
    .default(null)
    .describe('task description for the model; null: the description of the server is used'),
  actions: z
    .array(z.string())
    .min(1)
    .nullable()
    .default(null)
    .describe('names of the actions; null: the names that the server lists are used'),
  action_template: z
    .string()
    .default('{action}')
    .describe('text that is sent for an action; {action} is replaced by the action'),
  action_fields: z
    .record(z.string(), z.unknown())
    .default({ action: '{action}' })
    .describe('for OpenEnv: the dictionary that is sent as an action'),
  observation_field: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'for OpenEnv: field of the observation that is shown; null: the field "text" is shown or, if there is none, the whole observation as JSON',
    ),
  image_field: z
    .string()
    .default('images')
    .describe('for OpenEnv: field of the observation that contains images in base64'),
  success_return: z
    .number()
    .default(0)
    .describe(
      'if the server does not report success: an episode counts as a success if its return is above this value',
    ),
});
type Config = z.infer<typeof config>;

/** Returns the client for the configured protocol and server. */
export function peerOf(
  server: ServerConfig,
  envConfig: Record<string, unknown>,
  fields = { action: { action: '{action}' } as Record<string, unknown>, text: null as string | null, images: 'images' },
): RemotePeer {
  const options: PeerOptions = {
    url: server.url.replace(/\/+$/, ''),
    apiKey: server.api_key_env === null ? undefined : process.env[server.api_key_env],
    timeout: server.timeout,
    connectTimeout: server.connect_timeout,
    envConfig,
  };
  return server.protocol === 'openenv' ? openEnvPeer(options, fields) : gymServicePeer(options);
}

/**
 * Checks that the API key is set and that the server responds.
 * @throws MissingDependency if the key is not set or the server does not respond
 */
export async function requireServer(server: ServerConfig, peer: RemotePeer, remedy: string): Promise<void> {
  const { api_key_env: variable, url } = server;
  if (variable !== null && !process.env[variable])
    throw new MissingDependency(
      `needs a key, but the environment variable ${variable} is not set`,
      'set the variable where the run is started, or set env_config.api_key_env to null',
    );
  const why = await peer.missing();
  if (why !== undefined) throw new MissingDependency(`cannot reach a server at ${url} (${why})`, remedy);
}

/** Returns the maximum duration of a call with all its retries, in milliseconds. */
export function timeoutMsOf({ timeout, connect_timeout, retries, backoff }: ServerConfig): number {
  const waits = Array.from({ length: retries }, (_, i) => Math.max(waitBefore(i + 1, backoff, 0) * 1.9, 60));
  return 1000 * ((timeout + connect_timeout) * (retries + 1) + waits.reduce((sum, wait) => sum + wait, 0));
}

/**
 * Adds `success` to the info of an ended episode. If the server has sent this value (at the key `success` or in VAGEN's
 * `metrics`), the server's value is used. Otherwise the episode succeeded if its return exceeds the threshold.
 */
function withSuccess(info: Record<string, unknown>, total: number, threshold: number): Record<string, unknown> {
  if (info.success !== undefined) return info;
  const { success = total > threshold } = recordOf(recordOf(info.metrics).traj_metrics);
  return { ...info, success: Boolean(success) };
}

const remedy = 'start the server, for instance by ragen env serve, or correct env_config.url and env_config.protocol';

/** For each configuration, the description of the environment that the server sent when the environment was loaded. */
const described = new Map<string, RemoteDescription>();

/**
 * Returns the names of the actions from the configuration or, if it has none, from the server. Returns undefined if
 * actions are texts.
 */
const namesOf = (config: Config): ActionLookup | undefined =>
  config.actions === null
    ? described.get(JSON.stringify(config))?.actions
    : Object.fromEntries(config.actions.map((name, i) => [i + 1, name]));

const peerFor = (config: Config) =>
  peerOf(config, config.env_config, {
    action: config.action_fields,
    text: config.observation_field,
    images: config.image_field,
  });

export default defineEnvironment({
  name: 'remote',
  config,
  instruction: config => config.instruction ?? described.get(JSON.stringify(config))?.instruction ?? '',
  actions: namesOf,
  patience: timeoutMsOf,
  async dependencies(config) {
    const peer = peerFor(config);
    await requireServer(config, peer, remedy);
    const description = await peer.describe().catch((error: Error) => {
      const spoken = config.protocol === 'openenv' ? 'OpenEnv’s protocol' : 'GymService';
      throw new MissingDependency(`cannot use ${spoken} with the server at ${config.url} (${error.message})`, remedy);
    });
    described.set(JSON.stringify(config), description);
  },

  create(config) {
    const peer = peerFor(config);
    let episode: RemoteEpisode | undefined;
    let state: RemoteState;
    let names: ActionLookup | undefined;
    let total = 0;
    const observation = () => (state.images.length > 0 ? { text: state.text, images: state.images } : state.text);

    return {
      async reset({ seed, member = 0, mode = 'train' }) {
        await episode?.close();
        episode = new RemoteEpisode(peer, { seed, member, mode }, config);
        state = await episode.begin();
        total = 0;
        names = state.actions ?? namesOf(config);
        return { observation: observation(), info: state.info, ...(state.actions && { actions: state.actions }) };
      },

      async step(action): Promise<StepResult> {
        const name = typeof action === 'number' ? (names?.[action] ?? String(action)) : action;
        state = await episode!.step(config.action_template.replaceAll('{action}', () => name));
        const { reward, done, truncated, info } = state;
        total += reward;
        return {
          observation: observation(),
          reward,
          terminated: done && !truncated,
          truncated,
          info: done ? withSuccess(info, total, config.success_return) : info,
        };
      },

      render: observation,
      close: async () => episode?.close(),
    };
  },
});
