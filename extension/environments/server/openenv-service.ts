// OpenEnv's protocol (openenv-core 0.3). A WebSocket at /ws is a session. Over plain HTTP, /reset, /step and /state
// identify an episode by `episode_id`; all requests without this id share one episode. Also serves the routes that
// OpenEnv's tools need.
import { z } from 'zod';
import type { BoundedSocket } from './bounded-socket';
import { actionMeant, ServiceError, taskText, type Session, type Sessions, type SessionState } from './sessions';

const reset = z.looseObject({
  seed: z.int().min(0).nullish(),
  episode_id: z.string().max(255).nullish(),
  member: z.int().min(0).optional(),
  mode: z.enum(['train', 'val']).optional(),
});
// Clients such as verifiers read a reply as JSON first, so a text such as "2.5" or "true" arrives as a value.
const action = z.strictObject({
  action: z.union([z.string(), z.number(), z.boolean()], {
    error: ({ input }) =>
      input === undefined ? 'is missing' : `is ${JSON.stringify(input).slice(0, 100)}: send a name, an id or a text`,
  }),
  metadata: z.looseObject({}).optional(),
});
const step = z.looseObject({ action, episode_id: z.string().max(255).nullish() });
const message = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('reset'), data: reset.default({}) }),
  z.strictObject({ type: z.literal('step'), data: action }),
  z.strictObject({ type: z.literal('state') }),
  z.strictObject({ type: z.literal('close') }),
]);

const anonymous = 'openenv';

/** Milliseconds for which a refused connection stays open, so that the client can read the reason. */
const refusedMs = 2000;

export class OpenEnvService {
  constructor(private readonly sessions: Sessions) {}

  /** POST /reset: starts an episode; creates a session if `episode_id` has none. */
  async reset(body: unknown, client: string, environment?: string): Promise<Record<string, unknown>> {
    const { seed, episode_id, member, mode } = checked(reset, body ?? {});
    const id = sessionId(environment, episode_id);
    const session = this.sessions.get(id) ?? (await this.sessions.create({ name: environment, id, client }));
    return answer(session, await session.reset({ seed: seed ?? undefined, member, mode }), true);
  }

  /** POST /step: executes one action. */
  async step(body: unknown, environment?: string): Promise<Record<string, unknown>> {
    const { action, episode_id } = checked(step, body);
    const session = this.existing(environment, episode_id);
    return answer(session, await session.step(names => [meant(action.action, names)]));
  }

  /** GET /state: the episode's id, number of steps and seed. */
  state(episodeId: string | null, environment?: string): Record<string, unknown> {
    return stateOf(this.existing(environment, episodeId), episodeId ?? undefined);
  }

  /** GET /metadata: the environment's name, description and version. */
  async metadata(environment?: string): Promise<Record<string, unknown>> {
    const loaded = await this.sessions.environment(environment);
    return {
      name: loaded.name,
      description: taskText(loaded, { withActions: false }),
      readme_content: null,
      version: loaded.version,
      author: null,
      documentation_url: null,
    };
  }

  /**
   * GET /schema: JSON schemas of actions, observations and states. Named actions are listed with their ids in `x-ids`.
   * The title of actions is not `Action`, by which clients recognise environments of tools (MCP).
   */
  async schema(environment?: string): Promise<Record<string, unknown>> {
    const { actions = {} } = await this.sessions.environment(environment);
    const names = Object.values(actions);
    const one = names.length > 0 ? { enum: names, 'x-ids': Object.keys(actions).map(Number) } : { type: 'string' };
    const object = (title: string, properties: Record<string, unknown>, required: string[]) => {
      return { title, type: 'object', properties, required };
    };
    const flag = { type: 'boolean' };
    return {
      action: object('EnvironmentAction', { action: one, metadata: { type: 'object' } }, ['action']),
      observation: object(
        'Observation',
        {
          text: { type: 'string' },
          images: {
            type: 'array',
            items: { type: 'string', contentEncoding: 'base64', contentMediaType: 'image/png' },
          },
          terminated: flag,
          truncated: flag,
          info: { type: 'object' },
          actions: { type: 'object', additionalProperties: { type: 'string' } },
        },
        ['text', 'terminated', 'truncated', 'info'],
      ),
      state: object(
        'State',
        { episode_id: { type: 'string' }, step_count: { type: 'integer' }, seed: { type: ['integer', 'null'] } },
        ['episode_id', 'step_count', 'seed'],
      ),
    };
  }

  /** Serves a WebSocket as one session of `client`. The session ends with the connection. */
  async converse(socket: BoundedSocket, client: string, environment?: string): Promise<void> {
    let session: Session;
    try {
      session = await this.sessions.create({ name: environment, client });
    } catch (error) {
      const isFull = error instanceof ServiceError && error.status === 503;
      const { maxSessions } = this.sessions;
      // OpenEnv's client reads the error only after it has sent its first request, so the connection must stay open
      // until then.
      const leave = () => socket.close(isFull ? 1013 : 1011);
      const timer = setTimeout(leave, refusedMs);
      socket.onClose(() => clearTimeout(timer));
      await socket.send(
        written('error', {
          message: (error as Error).message,
          code: isFull ? 'CAPACITY_REACHED' : 'FACTORY_ERROR',
          ...(isFull && { active_sessions: this.sessions.list().length, max_sessions: maxSessions }),
        }),
      );
      return socket.listen(() => Promise.resolve(leave()));
    }
    session.onClosed = () => socket.close(1000);
    socket.onClose(() => void session.close());
    if (!socket.isOpen) void session.close();
    socket.listen(async text => {
      const reply = await answerTo(session, text);
      if (reply === undefined) void session.close();
      else await socket.send(reply);
    });
  }

  private existing(environment: string | undefined, episodeId: string | null | undefined): Session {
    const session = this.sessions.get(sessionId(environment, episodeId));
    if (!session)
      throw new ServiceError(
        404,
        episodeId ? `there is no episode ${episodeId}: reset it first` : 'there is no episode: POST /reset first',
      );
    return session;
  }
}

const sessionId = (environment: string | undefined, episodeId: string | null | undefined) =>
  JSON.stringify([anonymous, environment ?? null, episodeId ?? null]);

const written = (type: string, data: Record<string, unknown>): string => JSON.stringify({ type, data });

/** Returns the reply to one message; undefined if the message ends the session. */
async function answerTo(session: Session, text: string): Promise<string | undefined> {
  const refuse = (code: string, words: string, more = {}): string =>
    written('error', { message: words, code, ...more });
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch (error) {
    return refuse('INVALID_JSON', `Invalid JSON: ${(error as Error).message}`);
  }
  const { type } = (given ?? {}) as { type?: unknown };
  if (type === 'mcp') return written('mcp', mcpAnswer((given as { data?: unknown }).data));
  const read = message.safeParse(given);
  if (!read.success) {
    const known = type === 'reset' || type === 'step' || type === 'state' || type === 'close';
    if (!known && given !== null && typeof given === 'object' && !Array.isArray(given))
      return refuse('UNKNOWN_TYPE', `Unknown message type: ${String(type ?? '')}`);
    const errors = read.error.issues.map(issue => ({ loc: issue.path, msg: issue.message }));
    const [{ loc, msg }] = errors;
    const place = loc.length > 0 ? `${loc.map(String).join('.')}: ` : '';
    return refuse('VALIDATION_ERROR', `Invalid message: ${place}${msg}`, { errors });
  }
  try {
    switch (read.data.type) {
      case 'reset': {
        const { seed, member, mode } = read.data.data;
        const state = await session.reset({ seed: seed ?? undefined, member, mode });
        return written('observation', answer(session, state, true));
      }
      case 'step': {
        const { action } = read.data.data;
        return written('observation', answer(session, await session.step(names => [meant(action, names)])));
      }
      case 'state':
        return written('state', stateOf(session));
      case 'close':
        return undefined;
    }
  } catch (error) {
    const { status, message: words } = error as ServiceError;
    const errors = [{ loc: ['action'], msg: words }];
    // OpenEnv's client shows `message` and drops `errors`, so the reason is in both.
    return status === 422 ? refuse('VALIDATION_ERROR', words, { errors }) : refuse('EXECUTION_ERROR', words);
  }
}

function answer(session: Session, state: SessionState, isFirst = false): Record<string, unknown> {
  const { text, images, terminated, truncated, info } = state;
  const named = isFirst && session.actions && session.actions !== session.environment.actions;
  return {
    observation: {
      text,
      ...(images.length > 0 && { images: images.map(image => Buffer.from(image).toString('base64')) }),
      terminated,
      truncated,
      info,
      ...(named && { actions: session.actions }),
    },
    reward: isFirst ? null : state.reward,
    done: terminated || truncated,
  };
}

const stateOf = (session: Session, episodeId = session.id): Record<string, unknown> => ({
  episode_id: episodeId,
  step_count: session.steps,
  seed: session.seed ?? null,
});

/**
 * Returns the action that a client means by a name, an id or a text.
 * @throws ServiceError 422 if the episode has no such action
 */
function meant(given: number | string | boolean, names: Readonly<Record<number, string>> | undefined): number | string {
  const action = actionMeant(given, names);
  if (action !== undefined) return action;
  throw new ServiceError(422, `action is ${JSON.stringify(given)}: use one of ${Object.values(names!).join(', ')}`);
}

/** Returns the JSON-RPC error that replies to a request for tools. The environments of this server have no tools. */
export function mcpAnswer(request: unknown): Record<string, unknown> {
  const asked = z
    .strictObject({
      jsonrpc: z.literal('2.0'),
      method: z.string(),
      params: z.looseObject({}).optional(),
      id: z.union([z.string(), z.int()]).nullish(),
    })
    .safeParse(request);
  const [code, words] = !asked.success
    ? [-32600, 'Invalid request']
    : ['tools/list', 'tools/call'].includes(asked.data.method)
      ? [-32603, 'Environment does not support MCP']
      : [-32601, `Method not found: ${asked.data.method}`];
  return { jsonrpc: '2.0', id: asked.data?.id ?? null, error: { code, message: words } };
}

/** OpenAPI description of the server's paths. OpenEnv's validation requires such a description. */
export const openApi = {
  openapi: '3.1.0',
  info: { title: 'RAGEN Workbench environments', version: '1.0.0' },
  paths: Object.fromEntries(
    ['/reset', '/step', '/mcp', '/state', '/health', '/metadata', '/schema'].map((path, i) => {
      return [path, { [i < 3 ? 'post' : 'get']: { responses: { 200: { description: 'JSON' } } } }];
    }),
  ),
};

function checked<Schema extends z.ZodType>(schema: Schema, body: unknown): z.infer<Schema> {
  const read = schema.safeParse(body);
  if (read.success) return read.data;
  const [{ path, message: words }] = read.error.issues;
  throw new ServiceError(422, `${['body', ...path].map(String).join('.')}: ${words}`);
}
