// Client of OpenEnv's sessions (openenv-core 0.3). Each WebSocket connection at /ws is a session. The server receives
// {"type": "reset" | "step" | "close", "data"} and replies with {"type": "observation", "data": {observation, reward,
// done}} or {"type": "error"}. Each server chooses the keys of its observations and actions; `OpenEnvFields` states
// which keys hold the text, the images and the action.
import { WebSocket } from 'ws';
import type { ActionLookup } from '../api/environment';
import {
  askJson,
  connectionError,
  keyHeaders,
  missingAt,
  NotTaken,
  recordOf,
  rewardOf,
  SessionLost,
  stateOf,
  withoutKey,
  type PeerOptions,
  type RemotePeer,
  type RemoteSession,
  type RemoteState,
} from './peer';

export interface OpenEnvFields {
  /** Template of the dictionary that is sent as an action; `{action}` in its strings is replaced by the action. */
  action: Record<string, unknown>;
  /**
   * Key of the observation's text. Null stands for the key `text`. If `text` then contains no string, the whole
   * observation without its images is used as the text, in JSON.
   */
  text: string | null;
  /** Key of the observation's images; the value is a base64 string or a list of such strings. */
  images: string;
}

/** Maximum size of a message in bytes, as in OpenEnv's own client. */
const largestMessage = 100 * 1024 * 1024;

export function openEnvPeer(options: PeerOptions, fields: OpenEnvFields): RemotePeer {
  return {
    missing: () => missingAt(options, '/health'),

    async describe() {
      const optional = (path: string) => askJson(options, path).catch((): Record<string, unknown> => ({}));
      const [{ description }, schema] = [await optional('/metadata'), await optional('/schema')];
      const actions = namedActions(recordOf(schema.action), fields);
      return { instruction: typeof description === 'string' ? description : '', ...(actions && { actions }) };
    },

    async open(): Promise<RemoteSession> {
      const { socket, exchange } = await connected(options);
      const state = async (type: string, data: Record<string, unknown>): Promise<RemoteState> => {
        const answer = await exchange({ type, data });
        return openEnvState(recordOf(answer.data), fields);
      };
      return {
        reset: ({ seed, member, mode }) => state('reset', { ...options.envConfig, seed, member, mode }),
        step: action => state('step', filledIn(fields.action, action) as Record<string, unknown>),
        close: async () => {
          if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'close' }));
          socket.close();
          setTimeout(() => socket.terminate(), 1000).unref();
        },
      };
    },
  };
}

/**
 * Converts a server's response to a `RemoteState`. Flags and info are read from the observation, where `ragen env
 * serve` puts them.
 */
export function openEnvState(data: Record<string, unknown>, fields: OpenEnvFields): RemoteState {
  const observation = recordOf(data.observation);
  const { [fields.images]: pictures, ...rest } = observation;
  const shown = observation[fields.text ?? 'text'];
  const { truncated, info, actions } = observation;
  return stateOf({
    text: typeof shown === 'string' ? shown : JSON.stringify(fields.text === null ? rest : (shown ?? null)),
    images: (Array.isArray(pictures) ? pictures : [pictures]).flatMap(picture =>
      typeof picture === 'string' && picture !== '' ? [bytesOf(picture)] : [],
    ),
    reward: rewardOf(data.reward),
    done: data.done === true,
    truncated: truncated === true,
    info: recordOf(info),
    ...(Object.keys(recordOf(actions)).length > 0 && { actions: recordOf(actions) as ActionLookup }),
  });
}

const bytesOf = (picture: string) =>
  new Uint8Array(Buffer.from(picture.replace(/^data:image\/(?:png|jpe?g);base64,/i, ''), 'base64'));

/** Returns a copy of the template in which the action replaces `{action}`. */
function filledIn(template: unknown, action: string): unknown {
  if (typeof template === 'string') return template.replaceAll('{action}', () => action);
  if (Array.isArray(template)) return template.map(each => filledIn(each, action));
  if (template === null || typeof template !== 'object') return template;
  return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, filledIn(value, action)]));
}

/**
 * Returns the names of the actions by id, if the schema lists names for the key that holds the action. `ragen env
 * serve` also sends the ids; without ids, the names are numbered from 1.
 */
function namedActions(schema: Record<string, unknown>, { action }: OpenEnvFields): ActionLookup | undefined {
  const field = Object.keys(action).find(key => action[key] === '{action}');
  const { enum: names, 'x-ids': ids } = recordOf(recordOf(schema.properties)[field ?? '']);
  if (!Array.isArray(names) || names.length === 0 || !names.every(name => typeof name === 'string')) return undefined;
  return Object.fromEntries(names.map((name, i) => [Array.isArray(ids) ? Number(ids[i]) : i + 1, name]));
}

type Exchange = (message: Record<string, unknown>) => Promise<Record<string, unknown>>;

function connected(options: PeerOptions): Promise<{ socket: WebSocket; exchange: Exchange }> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(`${options.url.replace(/^http/, 'ws')}/ws`, {
      headers: keyHeaders(options.apiKey),
      handshakeTimeout: options.connectTimeout * 1000,
      maxPayload: largestMessage,
      perMessageDeflate: false,
    });
    socket.on('error', error => reject(connectionError(error, options.connectTimeout)));
    socket.on('unexpected-response', (request, response) => {
      request.destroy();
      const said = `the server answered /ws with status ${response.statusCode}`;
      const isFull = response.statusCode === 503 || response.statusCode === 429;
      reject(isFull ? new NotTaken(said, Number(response.headers['retry-after']) || undefined) : new Error(said));
    });
    // created before the connection opens, so that no early message is lost
    const exchange = exchangeOver(socket, options);
    socket.on('open', () => resolve({ socket, exchange }));
  });
}

/** Returns a function that sends a message and waits for its reply. Calls of the returned function must not overlap. */
function exchangeOver(socket: WebSocket, options: PeerOptions): Exchange {
  const { timeout } = options;
  let settle: { answer(text: string): void; lost(why: string): void } | undefined;
  let gone: string | undefined;
  let early: string | undefined; // a message that arrived before a request: a full server reports its error at once
  const leave = (why: string) => {
    gone ??= why;
    settle?.lost(gone);
  };
  socket.on('message', message => {
    const text = (message as Buffer).toString('utf8');
    if (settle) settle.answer(text);
    else early = text;
  });
  socket.on('error', error => leave(error.message));
  socket.on('close', code => leave(`the connection was closed with code ${code}`));

  return async message => {
    const text = await new Promise<string>((resolve, reject) => {
      if (early !== undefined) return resolve(early);
      if (gone !== undefined) return reject(new SessionLost(gone));
      const timer = setTimeout(() => leave(`no answer within ${timeout} s`), timeout * 1000);
      const done = () => {
        clearTimeout(timer);
        settle = undefined;
      };
      settle = {
        answer: said => (done(), resolve(said)),
        lost: why => (done(), reject(new SessionLost(why))),
      };
      socket.send(JSON.stringify(message));
    });
    early = undefined;
    const answer = recordOf(JSON.parse(text));
    if (answer.type !== 'error') return answer;
    const { message: detail, code } = recordOf(answer.data);
    const said = withoutKey(String(detail ?? ''), options);
    if (code === 'CAPACITY_REACHED') throw new NotTaken(said);
    throw new Error(`the server said ${JSON.stringify(said)} (${String(code)})`);
  };
}
