// A server of the Tinker REST API in this process, over HTTP: the peer that the engine over the network is tested
// against. Its model is exact and tiny (bigram-model.ts). Answers, status codes and texts are those recorded from SkyRL
// 0.3.0. `fault` cuts, delays, doubles or garbles chosen requests.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { createTar } from 'nanotar';
import { safetensorsParts } from '../../extension/models/weights/safetensors-writer';
import { z } from 'zod';
import { BigramModel, type BigramDatum } from './bigram-model';

export interface PeerOptions {
  vocabSize: number;
  tokens?: 'sum' | 'mean';
  samples?: 'sum' | 'mean';
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
}

/** What happens to a request: its connection is cut before or after it is executed, or its answer is withheld or replaced. */
export type Fault = 'cut before' | 'cut after' | 'silent' | 'garbled' | { status: number; body: unknown };

type Body = Record<string, unknown>;

const numbers = z.object({ data: z.array(z.number()) });
const inputSchema = z.object({ chunks: z.tuple([z.object({ tokens: z.array(z.int()) })]) });
const dataSchema = z.object({
  data: z.array(
    z.object({
      model_input: inputSchema,
      loss_fn_inputs: z.object({ target_tokens: numbers, weights: numbers, logprobs: numbers, advantages: numbers }),
    }),
  ),
  loss_fn: z.enum(['cross_entropy', 'importance_sampling']),
});
const sampleSchema = z.object({
  prompt: inputSchema,
  sampling_params: z.object({
    max_tokens: z.int(),
    seed: z.int().max(2 ** 31 - 1),
    stop: z.array(z.int()),
    temperature: z.number(),
  }),
  sampling_session_id: z.string(),
});
const adamSchema = z.object({
  learning_rate: z.number(),
  beta1: z.number(),
  beta2: z.number(),
  eps: z.number(),
  weight_decay: z.number(),
});

export class TinkerPeer {
  readonly requests: { path: string; body: Body }[] = [];
  /** Decides what happens to a request; by default nothing does. */
  fault: (path: string, body: Body) => Fault | undefined = () => undefined;
  readonly models = new Map<string, BigramModel>();
  private readonly saved = new Map<string, BigramModel>();
  private readonly published = new Map<string, BigramModel>();
  private readonly futures = new Map<string, Promise<{ status: number; body: unknown }>>();
  private sessions = 0;
  private count = 0;

  private constructor(
    private readonly server: Server,
    readonly options: PeerOptions,
  ) {}

  static async start(options: PeerOptions, port = 0): Promise<TinkerPeer> {
    const server = createServer((request, response) => void peer.serve(request, response));
    const peer = new TinkerPeer(server, options);
    await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve));
    return peer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
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
    const body = (parts.length > 0 ? JSON.parse(Buffer.concat(parts).toString()) : {}) as Body;
    this.requests.push({ path, body });
    const fault = this.fault(path, body);
    if (fault === 'cut before') return void request.socket.destroy();
    if (fault === 'silent') return;
    if (typeof fault === 'object') return send(response, fault.status, fault.body);
    const { key } = this.options;
    if (key !== undefined && request.headers['x-api-key'] !== key)
      return send(response, 401, { detail: 'Invalid API key' });
    const answer = await this.answer(path, body);
    if (fault === 'cut after') return void request.socket.destroy();
    if (fault === 'garbled') return void response.writeHead(200).end('<html>');
    if (Buffer.isBuffer(answer.body)) return void response.writeHead(200).end(answer.body);
    if (answer.status === 302) return void response.writeHead(302, { location: String(answer.body) }).end();
    send(response, answer.status, answer.body);
  }

  private async answer(path: string, body: Body): Promise<{ status: number; body: unknown }> {
    const ok = (result: unknown) => ({ status: 200, body: result });
    const archive = /^training_runs\/([^/]+)\/checkpoints\/([^/]+)\/(archive|download)$/.exec(path);
    if (archive?.[3] === 'archive')
      return { status: 302, body: `${this.url}/api/v1/${path.replace(/archive$/, 'download')}` };
    if (archive) return ok(archiveOf(this.saved.get(`tinker://${archive[1]}/${archive[2]}`)!));
    switch (path) {
      case 'get_server_capabilities':
        return ok({ supported_models: [{ model_name: 'peer/bigram' }] });
      case 'create_session':
        return ok({ session_id: `session_${++this.sessions}` });
      case 'session_heartbeat':
        return ok({ type: 'session_heartbeat' });
      case 'retrieve_future': {
        const future = this.futures.get(String(body.request_id));
        return future ? await future : { status: 404, body: { detail: 'Future not found' } };
      }
    }
    const id = String(++this.count);
    const { status, result } = this.execute(path, body);
    const delay = this.options.latencyMs ?? 0;
    const later = { status, body: result };
    this.futures.set(id, delay > 0 ? sleep(delay, later) : Promise.resolve(later));
    const model = (result as { model_id?: string }).model_id;
    return ok({ future_id: id, status: 'pending', request_id: id, ...(model !== undefined && { model_id: model }) });
  }

  /** Executes a request at once; its result is fetched later. */
  private execute(path: string, body: Body): { status: number; result: unknown } {
    const ok = (result: unknown) => ({ status: 200, result });
    const refuse = (detail: string) => ({ status: 400, result: { detail } });
    const { vocabSize, tokens = 'sum', samples = 'sum', models = 8, live = false, leaning } = this.options;
    if (path === 'create_model') {
      if (this.models.size >= models) return refuse(`Maximum number of LoRA adapters (${models}) reached`);
      const id = `model_${++this.count}`;
      this.models.set(id, new BigramModel(vocabSize, { tokens, samples }, 1, leaning));
      return ok({ model_id: id, lora_config: { rank: 8, alpha: 32 } });
    }
    if (path === 'asample') {
      const { prompt, sampling_params, sampling_session_id } = sampleSchema.parse(body);
      const { max_tokens, seed, stop, temperature } = sampling_params;
      const model = this.published.get(sampling_session_id);
      if (!model) return refuse(`Checkpoint not found: ${sampling_session_id}`);
      return ok({ sequences: [model.sample(prompt.chunks[0].tokens, max_tokens, stop, seed, temperature)] });
    }
    const id = String(body.model_id);
    const model = this.models.get(id);
    if (!model) return refuse('Model not found');
    switch (path) {
      case 'unload_model':
        this.models.delete(id);
        return ok({ model_id: id, status: 'unloaded' });
      case 'forward':
        return ok(outputs(dataOf(body.forward_input).map(({ input, targets }) => model.logprobs(input, targets))));
      case 'forward_backward': {
        const { loss_fn } = dataSchema.parse(body.forward_backward_input);
        return ok(outputs(model.accumulate(dataOf(body.forward_backward_input), loss_fn)));
      }
      case 'optim_step': {
        const grad_norm = model.optimize(adamSchema.parse(body.adam_params));
        return ok({ metrics: { 'skyrl.ai/grad_norm': grad_norm } });
      }
      case 'save_weights': {
        const path = `tinker://${id}/weights/${String(body.path)}`;
        this.saved.set(path, model.copy());
        return ok({ path });
      }
      case 'load_weights': {
        const stored = this.saved.get(String(body.path));
        if (!stored) return refuse('Checkpoint not found');
        this.models.set(id, stored.copy());
        return ok({ type: 'load_weights' });
      }
      case 'save_weights_for_sampler': {
        if (typeof body.path === 'string') {
          const path = `tinker://${id}/${body.path}`;
          this.saved.set(path, model.copy());
          return ok({ path, sampling_session_id: null });
        }
        const session = `sampling_${++this.count}`;
        this.published.set(session, live ? model : model.copy());
        return ok({ path: null, sampling_session_id: session });
      }
    }
    return refuse(`no such request: ${path}`);
  }
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** The data of a request in the model's form. */
function dataOf(given: unknown): BigramDatum[] {
  const { data } = dataSchema.parse(given);
  return data.map(({ model_input, loss_fn_inputs: { target_tokens, weights, logprobs, advantages } }) => ({
    input: model_input.chunks[0].tokens,
    targets: target_tokens.data,
    weights: weights.data,
    logprobs: logprobs.data,
    advantages: advantages.data,
  }));
}

const outputs = (logprobs: readonly number[][]) => ({
  loss_fn_output_type: 'scalar',
  loss_fn_outputs: logprobs.map(data => ({ logprobs: { data, dtype: 'float32', shape: [data.length] } })),
  metrics: {},
});

/** The table as an adapter in PEFT's form: the file's shape does not matter to the engine. */
function archiveOf({ table, vocabSize }: BigramModel): Buffer {
  const name = 'base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight';
  const weights = Buffer.concat(
    safetensorsParts([{ name, shape: [vocabSize, vocabSize], data: Float32Array.from(table) }]),
  );
  return gzipSync(createTar([{ name: 'adapter_model.safetensors', data: weights }]));
}
