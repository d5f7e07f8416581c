// VAGEN's two protocols. GymService: POST /connect and /call with multipart bodies, GET /sessions. The older batch
// server is under /vagen: POST /environments and /batch/{reset, step, reward, system_prompt, close} with JSON; the keys
// of each JSON object are ids that the client chooses. Each batch operation also has a variant for a single
// environment, with its own path. In both protocols, clients send the model's whole response as the action. The text
// between the answer tags of this response is split into actions at RAGEN's separator.
import { z } from 'zod';
import { decodeMultipart, encodeMultipart, type Message } from '../../../envs/remote/multipart';
import { between } from '../../common/tagged-text';
import { actionMeant, ServiceError, taskText, type Session, type Sessions, type SessionState } from './sessions';

const environmentConfig = z.record(z.string(), z.unknown());
const connect = z.looseObject({ env_config: environmentConfig.default({}), seed: z.int().min(0).nullish() });
const call = z.looseObject({
  session_id: z.string({ error: 'session_id required' }).min(1, 'session_id required'),
  method: z.string({ error: 'method required' }).min(1, 'method required'),
  params: z.record(z.string(), z.unknown()).default({}),
});
const resetParams = z.looseObject({
  seed: z.int().min(0).default(0),
  member: z.int().min(0).optional(),
  mode: z.enum(['train', 'val']).optional(),
});
const stepParams = z.looseObject({ action_str: z.string().default('') });

const separator = '||';

export class GymService {
  constructor(private readonly sessions: Sessions) {}

  /** POST /connect: creates a session; also starts an episode if a seed is given. */
  async connect({ data }: Message, client: string, environment?: string): Promise<Message> {
    const { env_config, seed } = checked(connect, data);
    const session = await open(this.sessions, env_config, client, environment);
    if (seed === undefined || seed === null) return { data: { session_id: session.id }, images: [] };
    const { text, images, info } = await session.reset({ seed });
    return { data: { session_id: session.id, obs: text, info }, images };
  }

  /** POST /call: calls a method of the environment in a session. */
  async call({ data }: Message): Promise<Message> {
    const { session_id, method, params } = checked(call, data);
    const session = this.sessions.get(session_id);
    if (!session) throw new ServiceError(404, `Session ${session_id} not found`);
    switch (method) {
      case 'system_prompt':
        return { data: { obs: taskText(session.environment, { withActions: true }) }, images: [] };
      case 'reset': {
        const { text, images, info } = await session.reset(checked(resetParams, params));
        return { data: { obs: text, info }, images };
      }
      case 'step': {
        const { action_str } = checked(stepParams, params);
        const state = await session.step(names => actionsIn(action_str, session, names));
        const { text, images, reward, terminated, truncated } = state;
        return {
          data: { obs: text, reward, done: terminated || truncated, info: infoOf(state) },
          images,
        };
      }
      case 'close':
        await session.close();
        return { data: { closed: true }, images: [] };
      default:
        throw new ServiceError(400, `Unknown method: ${method}`);
    }
  }

  /** GET /sessions: the number of open sessions, the limits, and each session's age. */
  stats(): Record<string, unknown> {
    const timeout = this.sessions.sessionTimeoutMs / 1000;
    const open = this.sessions.list();
    return {
      num_sessions: open.length,
      max_sessions: this.sessions.maxSessions,
      session_timeout: timeout,
      sessions: open.map(({ id, createdAt, idleMs }) => ({
        session_id: id,
        created_at: createdAt / 1000,
        last_access: (Date.now() - idleMs) / 1000,
        idle_seconds: idleMs / 1000,
        will_timeout_in: Math.max(0, timeout - idleMs / 1000),
      })),
    };
  }
}

const ids = z.array(z.string());
const byId = <Value extends z.ZodType>(value: Value) => z.record(z.string(), value);
const seed = z.int().min(0).nullish();

/** VAGEN's batch server, whose paths start with /vagen. */
export class BatchService {
  constructor(private readonly sessions: Sessions) {}

  /**
   * Answers a request.
   * @param path without /vagen
   */
  async answer(method: string, path: string, body: unknown, client: string): Promise<Record<string, unknown>> {
    const [, head, id] =
      /^\/(environments|batch|reset|step|reward|system_prompt|close)(?:\/([^/]+))?$/.exec(path) ?? [];
    const batch = head === 'batch' ? id : undefined;
    const route = `${method} ${head === undefined ? path : id === undefined || batch ? path : `/${head}/<id>`}`;
    switch (route) {
      case 'POST /environments': {
        const { ids2configs } = asked('ids2configs', byId(environmentConfig), body);
        const made = await Promise.allSettled(Object.entries(ids2configs).map(each => this.create(...each, client)));
        const refused = made.find(each => each.status === 'rejected');
        if (!refused) return { success: true };
        await Promise.all(made.map(async each => each.status === 'fulfilled' && each.value.close()));
        throw refused.reason;
      }
      case 'POST /batch/reset': {
        const { ids2seeds } = asked('ids2seeds', byId(seed), body);
        return { results: await this.each(ids2seeds, (env, given) => this.reset(env, given)) };
      }
      case 'POST /batch/step': {
        const { ids2actions } = asked('ids2actions', byId(z.string()), body);
        return { results: await this.each(ids2actions, (env, given) => this.step(env, given)) };
      }
      case 'POST /batch/reward':
        return { rewards: await this.ofAll(body, ({ total }) => total) };
      case 'POST /batch/system_prompt':
        return { system_prompts: await this.ofAll(body, promptOf) };
      case 'POST /batch/close':
        await this.ofAll(body, session => session.close());
        return { status: 'success' };
      case 'POST /reset/<id>': {
        const [observation, info] = await this.reset(id, asked('seed', seed.optional(), body ?? {}).seed);
        return { observation, info };
      }
      case 'POST /step/<id>': {
        const { action } = asked('action', z.string(), body);
        const [observation, reward, done, info] = await this.step(id, action);
        return { observation, reward, done, info };
      }
      case 'GET /reward/<id>':
        return { reward: this.session(id).total };
      case 'GET /system_prompt/<id>':
        return { system_prompt: promptOf(this.session(id)) };
      case 'DELETE /close/<id>':
        await this.session(id).close();
        return { status: 'success' };
      case 'GET /health': {
        const open = this.sessions.list();
        return {
          status: 'ok',
          message: 'Environment server is running',
          registered_envs: this.sessions.names,
          active_services: [...new Set(open.map(({ environment }) => environment.name))],
          active_environments: open.length,
        };
      }
      default:
        throw new ServiceError(404, `there is no ${method} /vagen${path}`);
    }
  }

  private async create(id: string, config: Record<string, unknown>, client: string): Promise<Session> {
    const { env_name, env_config } = config;
    if (typeof env_name !== 'string') throw new ServiceError(400, `Config for environment ${id} is missing 'env_name'`);
    const own = environmentConfig.safeParse(env_config ?? {});
    if (!own.success) throw new ServiceError(400, `env_config of environment ${id} is not an object`);
    return this.sessions.create({ name: env_name, config: own.data, id: sessionId(id), client });
  }

  private session(id: string): Session {
    const session = this.sessions.get(sessionId(id));
    if (!session) throw new ServiceError(404, `Environment ${id} not found`);
    return session;
  }

  private async reset(id: string, seed: number | null | undefined) {
    const state = await this.session(id).reset({ seed: seed ?? undefined });
    return [observationOf(state), state.info] as const;
  }

  private async step(id: string, answer: string) {
    const session = this.session(id);
    const state = await session.step(names => actionsIn(answer, session, names));
    return [observationOf(state), state.reward, state.terminated || state.truncated, infoOf(state)] as const;
  }

  private async each<Given, Result>(
    of: Record<string, Given>,
    does: (id: string, given: Given) => Promise<Result>,
  ): Promise<Record<string, Result>> {
    for (const id of Object.keys(of)) this.session(id); // check all ids before any episode changes
    const one = async ([id, given]: [string, Given]) => [id, await does(id, given)] as const;
    return Object.fromEntries(await Promise.all(Object.entries(of).map(one)));
  }

  private async ofAll<T>(body: unknown, of: (session: Session) => T): Promise<Record<string, Awaited<T>>> {
    const { env_ids } = asked('env_ids', ids, body);
    const sessions = env_ids.map(id => this.session(id));
    const values = await Promise.all(sessions.map(of));
    return Object.fromEntries(env_ids.map((id, i) => [id, values[i]]));
  }
}

const sessionId = (id: string) => JSON.stringify(['vagen', id]);
const promptOf = ({ environment }: Session) => taskText(environment, { withActions: true });

/** Returns an observation in the format of VAGEN's batch server. */
function observationOf({ text, images }: SessionState): Record<string, unknown> {
  const pictures = images.map(image => ({ __pil_image__: Buffer.from(image).toString('base64') }));
  return { obs_str: text, ...(pictures.length > 0 && { multi_modal_data: { '<image>': pictures } }) };
}

/** Returns the info of a step; for a truncated episode, with Gymnasium's key `TimeLimit.truncated`. */
const infoOf = ({ info, terminated, truncated }: SessionState): Record<string, unknown> =>
  truncated && !terminated ? { ...info, 'TimeLimit.truncated': true } : info;

/** Creates a session. The environment's name is taken from the path, else from the configuration. */
function open(
  sessions: Sessions,
  config: Record<string, unknown>,
  client: string,
  environment?: string,
): Promise<Session> {
  const { env_type, env_name, ...rest } = config;
  const named = [environment, env_type, env_name].find(name => name !== undefined);
  if (named !== undefined && typeof named !== 'string')
    throw new ServiceError(400, 'env_config.env_type is not a string: set it to the name of an environment');
  return sessions.create({ name: named, config: rest, client });
}

/** Returns the valid actions in a model's response, in order. */
export function actionsIn(
  answer: string,
  { environment }: Session,
  names: Readonly<Record<number, string>> | undefined,
): (number | string)[] {
  const tagged = between(answer, '<answer>', '</answer>')?.inner;
  const isOne = tagged === undefined || environment.whole_answer;
  const given = isOne ? [tagged ?? answer] : tagged.split(separator);
  return given
    .map(each => (tagged === undefined ? each : each.trim()))
    .filter(each => each.trim() !== '')
    .map(each => actionMeant(each, names))
    .filter(action => action !== undefined);
}

/**
 * Parses a request's body as a GymService message.
 * @throws ServiceError 400 if the body has another format
 */
export const readMessage = (type: string, body: Uint8Array): Promise<Message> =>
  decodeMultipart(type, body).catch((error: Error) => {
    throw new ServiceError(400, `the body ${error.message}`);
  });

export const writeMessage = (message: Message) => encodeMultipart(message, 'mixed');

function checked<Schema extends z.ZodType>(schema: Schema, value: unknown): z.infer<Schema> {
  const read = schema.safeParse(value);
  if (read.success) return read.data;
  const [{ path, message }] = read.error.issues;
  const keyPath = path.map(String).join('.');
  throw new ServiceError(
    400,
    message.includes(keyPath) && keyPath !== '' ? message : `${keyPath || 'data'}: ${message}`,
  );
}

function asked<Key extends string, Value extends z.ZodType>(
  key: Key,
  value: Value,
  body: unknown,
): Record<Key, z.infer<Value>> {
  const { [key]: given } = (body ?? {}) as Record<string, unknown>;
  const read = value.safeParse(given);
  if (read.success) return { [key]: read.data } as Record<Key, z.infer<Value>>;
  throw new ServiceError(
    400,
    given === undefined ? `Missing required parameter: ${key}` : `${key}: ${read.error.issues[0].message}`,
  );
}
