// A server of the Tinker REST API in this process, over HTTP: the peer that the engine over the network is tested
// against. Its models are exact and tiny (bigram-model.ts, linear-critic.ts). Answers, status codes and texts are those
// recorded from SkyRL 0.3.0. `fault` cuts, delays, repeats, doubles, withholds or garbles chosen requests.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createTar } from 'nanotar';
import { safetensorsParts } from '../../extension/models/weights/safetensors-writer';
import { BigramModel, type Reduction } from './bigram-model';
import { LinearCritic } from './linear-critic';
import { adamSchema, criticDataOf, dataOf, lossOf, sampleSchema } from './tinker-peer-requests';

export interface PeerOptions extends Partial<Reduction> {
  vocabSize: number;
  /** Maximum number of models. */
  models?: number;
  /** Milliseconds until a result is there. */
  latencyMs?: number;
  /** A published version is the model in training, as on SkyRL's JAX backend. */
  live?: boolean;
  /** Logits that the start of every model adds for tokens. */
  leaning?: Readonly<Record<number, number>>;
  /** Key that requests must have. */
  key?: string;
  /** Key and certificate of a server with HTTPS, in PEM format. */
  tls?: { key: string; cert: string };
  /** Base models that the server offers. */
  offers?: readonly string[];
  /** Whether one critic can be created after a policy, as on SkyRL's FSDP backend. */
  critic?: boolean;
  /** Whether checkpoints can be deleted; SkyRL 0.3.0 has no such call. */
  deletes?: boolean;
  /** A request with a sequence number is executed once, as on newer servers. */
  remembers?: boolean;
  /** The first optimizer step of every model reports this multiple of its gradient norm. */
  warmUp?: number;
  /** What the server says about the adapters that it creates. */
  adapter?: { alpha?: number; train_attn?: boolean; train_mlp?: boolean; train_unembed?: boolean };
}

/**
 * What happens to a request: its connection is cut before or after it is executed; it is not answered, before or after
 * its execution; it is executed twice; its answer comes twice, is garbled, late or replaced.
 */
export type Fault =
  | 'cut before'
  | 'cut after'
  | 'silent'
  | 'silent after'
  | 'twice'
  | 'doubled'
  | 'garbled'
  | { after: Promise<unknown> }
  | { status: number; body: unknown };

type Body = Record<string, unknown>;
interface Reply {
  status: number;
  body: unknown;
}

const ok = (body: unknown): Reply => ({ status: 200, body });
const refuse = (detail: string, status = 400): Reply => ({ status, body: { detail } });

export class TinkerPeer {
  readonly requests: { path: string; body: Body }[] = [];
  /** Decides what happens to a request; by default nothing does. */
  fault: (path: string, body: Body) => Fault | undefined = () => undefined;
  readonly models = new Map<string, BigramModel>();
  readonly critics = new Map<string, LinearCritic>();
  /** Saved states and sampler weights by address. */
  readonly saved = new Map<string, BigramModel | LinearCritic>();
  /** Sampling sessions: their models, and the addresses of their weights. */
  private readonly published = new Map<string, { model: BigramModel; path: string }>();
  private readonly futures = new Map<string, Promise<Reply>>();
  /** First answers by model and sequence number. */
  private readonly executed = new Map<string, { content: string; reply: Reply }>();
  /** Optimizer steps of each model. */
  private readonly steps = new Map<string, number>();
  private sessions = 0;
  private count = 0;
  /** Requests that are open now, heartbeats excepted, and the most that were. */
  private open = 0;
  mostOpen = 0;

  private constructor(
    private readonly server: Server,
    readonly options: PeerOptions,
  ) {}

  static async start(options: PeerOptions, port = 0): Promise<TinkerPeer> {
    const serve = (request: IncomingMessage, response: ServerResponse): void => void peer.serve(request, response);
    const server = options.tls ? createTlsServer(options.tls, serve) : createServer(serve);
    const peer = new TinkerPeer(server, options);
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
    return peer;
  }

  get url(): string {
    return `${this.options.tls ? 'https' : 'http'}://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Number of requests with this path. */
  sent(path: string): number {
    return this.requests.filter(request => request.path === path).length;
  }

  /** Ends the server and its connections. */
  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise(resolve => this.server.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const path = request.url!.replace('/api/v1/', '');
    const isCounted = path !== 'session_heartbeat';
    if (isCounted) this.mostOpen = Math.max(this.mostOpen, ++this.open);
    response.once('close', () => isCounted && this.open--);
    const body = (parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : {}) as Body;
    const name = request.method === 'DELETE' ? `DELETE ${path}` : path;
    this.requests.push({ path: name, body });
    const fault = this.fault(name, body);
    if (fault === 'cut before') return void request.socket.destroy();
    if (fault === 'silent') return;
    if (typeof fault === 'object') {
      if ('status' in fault) return send(response, fault.status, fault.body);
      await fault.after;
    }
    const { key } = this.options;
    if (key !== undefined && request.headers['x-api-key'] !== key)
      return send(response, 401, { detail: 'Invalid API key' });
    if (fault === 'twice') await this.answer(name, body);
    const answer = await this.answer(name, body);
    if (fault === 'cut after') return void request.socket.destroy();
    if (fault === 'silent after') return;
    if (fault === 'garbled') return void response.writeHead(200).end('<html>');
    if (Buffer.isBuffer(answer.body)) return void response.writeHead(200).end(answer.body);
    if (answer.status === 302) return void response.writeHead(302, { location: String(answer.body) }).end();
    if (fault === 'doubled') return void request.socket.end(rawTwice(answer));
    send(response, answer.status, answer.body);
  }

  private async answer(path: string, body: Body): Promise<Reply> {
    const removed = /^DELETE training_runs\/([^/]+)\/checkpoints\/(.+)$/.exec(path);
    if (removed) {
      if (!this.options.deletes) return refuse('Not Found', 404);
      return this.saved.delete(`tinker://${removed[1]}/${removed[2]}`) ? ok(null) : refuse('Checkpoint not found', 404);
    }
    const archive = /^training_runs\/([^/]+)\/checkpoints\/([^/]+)\/(archive|download)$/.exec(path);
    if (archive?.[3] === 'archive')
      return { status: 302, body: `${this.url}/api/v1/${path.replace(/archive$/, 'download')}` };
    if (archive) {
      const stored = this.saved.get(`tinker://${archive[1]}/sampler_weights/${archive[2]}`);
      return stored instanceof BigramModel ? ok(archiveOf(stored)) : refuse('Checkpoint not found', 404);
    }
    const sampler = /^samplers\/(.+)$/.exec(path);
    if (sampler) {
      const session = this.published.get(sampler[1]);
      return session ? ok({ sampler_id: sampler[1], model_path: session.path }) : refuse('Sampler not found', 404);
    }
    switch (path) {
      case 'get_server_capabilities':
        return ok({ supported_models: (this.options.offers ?? ['peer/bigram']).map(model_name => ({ model_name })) });
      case 'healthz':
        return ok({ status: 'ok' });
      case '/':
        return ok({ name: 'Tinker peer', version: '1.0.0' });
      case 'create_session':
        return ok({ session_id: `session_${++this.sessions}` });
      case 'session_heartbeat':
        return ok({ type: 'session_heartbeat' });
      case 'retrieve_future': {
        const future = this.futures.get(String(body.request_id));
        return future ? await future : refuse('Future not found', 404);
      }
    }
    return this.options.remembers && typeof body.seq_id === 'number' ? this.once(path, body) : this.begin(path, body);
  }

  /** Executes a request once, however often it comes. */
  private once(path: string, body: Body): Reply {
    const name = `${String(body.model_id ?? body.sampling_session_id)} ${body.seq_id as number}`;
    const content = JSON.stringify([path, body]);
    const known = this.executed.get(name);
    if (known) return known.content === content ? known.reply : refuse('seq_id was used before', 409);
    const reply = this.begin(path, body);
    this.executed.set(name, { content, reply });
    return reply;
  }

  /** Executes a request at once; its result is fetched later. */
  private begin(path: string, body: Body): Reply {
    const id = String(++this.count);
    const result = this.execute(path, body);
    if (result.status === 409) return result;
    const delay = this.options.latencyMs ?? 0;
    this.futures.set(id, delay > 0 ? sleep(delay, result) : Promise.resolve(result));
    const model = (result.body as { model_id?: string }).model_id;
    return ok({ future_id: id, status: 'pending', request_id: id, ...(model !== undefined && { model_id: model }) });
  }

  private execute(path: string, body: Body): Reply {
    if (path === 'create_model') return this.create(body);
    if (path === 'asample') {
      const { prompt, sampling_params, sampling_session_id } = sampleSchema.parse(body);
      const { max_tokens, seed, stop, temperature } = sampling_params;
      const session = this.published.get(sampling_session_id);
      if (!session) return refuse(`Checkpoint not found: ${sampling_session_id}`);
      return ok({ sequences: [session.model.sample(prompt.chunks[0].tokens, max_tokens, stop, seed, temperature)] });
    }
    const id = String(body.model_id);
    const critic = this.critics.get(id);
    if (critic) return this.executeCritic(path, id, critic, body);
    const model = this.models.get(id);
    return model ? this.executePolicy(path, id, model, body) : refuse('Model not found');
  }

  private create(body: Body): Reply {
    const { vocabSize, tokens = 'sum', samples = 'sum', models = 8, leaning, adapter } = this.options;
    const id = `model_${++this.count}`;
    if (body.model_role === 'critic') {
      if (!this.options.critic) return refuse("JaxBackend only supports model_role='policy', got 'critic'");
      if (this.models.size === 0) return refuse('Create a policy model before creating a critic model');
      if (this.critics.size > 0) return refuse("SkyRLTrainBackend already has a 'critic' model");
      this.critics.set(id, new LinearCritic(vocabSize));
    } else {
      if (this.models.size >= models) return refuse(`Maximum number of LoRA adapters (${models}) reached`);
      this.models.set(id, new BigramModel(vocabSize, { tokens, samples }, 1, leaning));
    }
    return ok({ model_id: id, lora_config: { rank: 8, alpha: 32, ...adapter } });
  }

  private executeCritic(path: string, id: string, critic: LinearCritic, body: Body): Reply {
    switch (path) {
      case 'unload_model':
        this.critics.delete(id);
        return ok({ model_id: id, status: 'unloaded' });
      case 'forward':
        return ok(
          outputs(
            'values',
            criticDataOf(body.forward_input).map(({ input }) => critic.values(input)),
          ),
        );
      case 'forward_backward': {
        const { loss_fn, loss_fn_config } = lossOf(body.forward_backward_input);
        if (loss_fn !== 'ppo_critic')
          return refuse(`Critic batches must use loss_fn='ppo' or 'ppo_critic', got '${loss_fn}'`);
        const data = criticDataOf(body.forward_backward_input);
        if (
          data.some(({ weights, values, returns }) => new Set([weights, values, returns].map(x => x.length)).size > 1)
        )
          return refuse('Critic forward_backward requires values and returns for every response token');
        critic.accumulate(data, loss_fn_config?.value_clip);
        return ok({ loss_fn_output_type: 'scalar', loss_fn_outputs: data.map(() => ({})), metrics: {} });
      }
      case 'optim_step':
        return ok({ metrics: { 'skyrl.ai/grad_norm': critic.optimize(adamSchema.parse(body.adam_params)) } });
      case 'save_weights':
        return this.save(`tinker://${id}/weights/${String(body.path)}`, critic.copy());
      case 'load_weights': {
        const stored = this.saved.get(String(body.path));
        if (!(stored instanceof LinearCritic)) return refuse('Checkpoint not found');
        this.critics.set(id, stored.copy());
        return ok({ type: 'load_weights' });
      }
    }
    return refuse(`no such request: ${path}`);
  }

  private executePolicy(path: string, id: string, model: BigramModel, body: Body): Reply {
    switch (path) {
      case 'unload_model':
        this.models.delete(id);
        return ok({ model_id: id, status: 'unloaded' });
      case 'forward': {
        if (lossOf(body.forward_input).loss_fn === 'ppo_critic')
          return refuse("loss_fn='ppo_critic' is only valid for critic models");
        const data = dataOf(body.forward_input);
        return ok(
          outputs(
            'logprobs',
            data.map(({ input, targets }) => model.logprobs(input, targets)),
          ),
        );
      }
      case 'forward_backward': {
        const { loss_fn } = lossOf(body.forward_backward_input);
        if (loss_fn === 'ppo_critic') return refuse("loss_fn='ppo_critic' is only valid for critic models");
        return ok(outputs('logprobs', model.accumulate(dataOf(body.forward_backward_input), loss_fn)));
      }
      case 'optim_step': {
        const norm = model.optimize(adamSchema.parse(body.adam_params));
        const steps = (this.steps.get(id) ?? 0) + 1;
        this.steps.set(id, steps);
        return ok({ metrics: { 'skyrl.ai/grad_norm': steps === 1 ? norm * (this.options.warmUp ?? 1) : norm } });
      }
      case 'save_weights':
        return this.save(`tinker://${id}/weights/${String(body.path)}`, model.copy());
      case 'load_weights': {
        const stored = this.saved.get(String(body.path));
        if (!(stored instanceof BigramModel)) return refuse('Checkpoint not found');
        this.models.set(id, stored.copy());
        return ok({ type: 'load_weights' });
      }
      case 'save_weights_for_sampler': {
        const isNamed = typeof body.path === 'string';
        const name = isNamed
          ? String(body.path)
          : `ss${String(body.sampling_session_seq_id)}_seq${String(body.seq_id)}`;
        const path = `tinker://${id}/sampler_weights/${name}`;
        const reply = this.save(path, model.copy());
        if (isNamed || reply.status !== 200) return reply;
        const session = `sampling_${++this.count}`;
        this.published.set(session, { model: this.options.live ? model : model.copy(), path });
        return ok({ path: null, sampling_session_id: session });
      }
    }
    return refuse(`no such request: ${path}`);
  }

  /** Saves weights under a new name. */
  private save(path: string, model: BigramModel | LinearCritic): Reply {
    const [, , id, , name] = path.split('/');
    if (this.saved.has(path)) return refuse(`Checkpoint '${name}' already exists for model '${id}'`, 409);
    this.saved.set(path, model);
    return ok({ path, sampling_session_id: null });
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The bytes of an answer, twice. */
function rawTwice({ status, body }: Reply): string {
  const text = JSON.stringify(body);
  const head = `HTTP/1.1 ${status} OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n`;
  return (head + text).repeat(2);
}

const outputs = (name: 'logprobs' | 'values', rows: readonly number[][]) => ({
  loss_fn_output_type: 'scalar',
  loss_fn_outputs: rows.map(data => ({ [name]: { data, dtype: 'float32', shape: [data.length] } })),
  metrics: {},
});

/** The trained rows as an adapter in PEFT's form: the file's shape does not matter to the engine. */
function archiveOf({ trainedRows, vocabSize }: BigramModel): Buffer {
  const name = 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight';
  const data = Float32Array.from(trainedRows.flatMap(row => [...row]));
  const weights = Buffer.concat(safetensorsParts([{ name, shape: [trainedRows.length, vocabSize], data }]));
  return gzipSync(createTar([{ name: 'adapter_model.safetensors', data: weights }]));
}
