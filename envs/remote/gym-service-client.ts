// Client of VAGEN's GymService. POST /connect {env_config} returns a session_id. POST /call {session_id, method,
// params} calls a method: `reset`, `step`, `system_prompt` or `close`. Bodies are multipart (`multipart.ts`). VAGEN's
// own client repeats a call that got no response; this client does not, because the server may have executed the call.
import { decodeMultipart, encodeMultipart } from './multipart';
import {
  ask,
  missingAt,
  recordOf,
  rewardOf,
  SessionLost,
  stateOf,
  type PeerOptions,
  type RemotePeer,
  type RemoteSession,
  type RemoteState,
} from './peer';

/** Key in Gymnasium's info that marks an episode as truncated. */
const truncatedKey = 'TimeLimit.truncated';

export function gymServicePeer(options: PeerOptions): RemotePeer {
  const post = async (path: string, data: Record<string, unknown>) => {
    const answer = await ask(options, path, encodeMultipart({ data, images: [] }, 'form-data'));
    return decodeMultipart(answer.type, answer.body).catch((error: Error) => {
      throw new Error(`the server's answer to ${path} ${error.message}`);
    });
  };

  async function connect() {
    const { data } = await post('/connect', { env_config: options.envConfig }).catch((error: unknown) => {
      // Status 404 cannot mean a lost session here, because no session exists yet. It means that the server is not a
      // GymService.
      if (error instanceof SessionLost && error.message.includes(' 404')) throw new Error(error.message);
      throw error;
    });
    if (typeof data.session_id !== 'string') throw new Error('the server gave no session_id');
    return (method: string, params: Record<string, unknown> = {}) =>
      post('/call', { session_id: data.session_id, method, params });
  }

  return {
    missing: () => missingAt(options, '/health'),

    async describe() {
      const call = await connect();
      const { data } = await call('system_prompt');
      await call('close').catch(() => undefined);
      return { instruction: typeof data.obs === 'string' ? data.obs : '' };
    },

    async open(): Promise<RemoteSession> {
      const call = await connect();
      const state = async (method: string, params: Record<string, unknown>): Promise<RemoteState> => {
        const { data, images } = await call(method, params);
        const { [truncatedKey]: limit, ...info } = recordOf(data.info);
        return stateOf({
          text: String(data.obs ?? ''),
          images,
          reward: rewardOf(data.reward),
          done: data.done === true,
          truncated: limit === true,
          info,
        });
      };
      return {
        reset: ({ seed, member, mode }) => state('reset', { seed, member, mode }),
        step: action => state('step', { action_str: action }),
        close: () =>
          call('close').then(
            () => undefined,
            () => undefined,
          ),
      };
    },
  };
}
