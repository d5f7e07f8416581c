// One episode on an environment server of the verifiers library (verifiers.v1.serve, version 0.4): a request `run` with
// the task and the address of the model, and its replies. Messages have the parts [request id, kind, content in
// MessagePack]. While the episode runs, the server sends `delta`s, the changes of the episode's traces; at its end, it
// sends a `reply`. A trace is what one agent of the environment did.
import { randomUUID } from 'node:crypto';
import { decode, encode } from '@msgpack/msgpack';
import { z } from 'zod';
import { DealerSocket } from './dealer-socket';

const failure = z.object({ type: z.string(), message: z.string() });

const delta = z.object({
  trace: z.string(),
  discard: z.boolean().nullish(),
  set: z.record(z.string(), z.unknown()).nullish(),
  errors: z.array(failure).nullish(),
});

const reply = z.object({
  success: z.boolean(),
  error: z.string().nullish(),
  head: z.object({ ok: z.boolean(), errors: z.array(failure) }).nullish(),
  traces: z.array(z.object({ id: z.string() })).nullish(),
});

/** The part of a trace's changing fields that the reward needs. */
const traceFields = z.object({
  agent: z.object({ name: z.string(), trainable: z.boolean() }).optional(),
  rewards: z.record(z.string(), z.object({ score: z.number(), weight: z.number() }).nullable()).default({}),
  metrics: z.record(z.string(), z.number().nullable()).default({}),
  stop_condition: z.string().nullable().default(null),
});

/** What one agent of the environment earned. */
export interface EndedTrace {
  agent: string;
  /** Whether the environment trains this agent's calls. */
  isTrained: boolean;
  /** Weighted rewards by name; empty if the episode was not scored. */
  rewards: Record<string, number>;
  metrics: Record<string, number>;
  /** What ended the trace, such as `max_turns`; null if its program ended by itself. */
  stopped: string | null;
}

export interface RunEnd {
  traces: EndedTrace[];
  /** The last error of the episode; undefined if it has none. */
  error: string | undefined;
}

export interface RunRequest {
  /** Fields of the task (`TaskData`). */
  task: Record<string, unknown>;
  /** Base address of OpenAI's protocol. */
  url: string;
}

/** The traces of a running episode, assembled from deltas. */
export class TraceAssembly {
  private readonly traces = new Map<string, Record<string, unknown>>();
  private readonly errors = new Map<string, z.infer<typeof failure>>();

  /** @throws Error if the delta has another form than expected */
  apply(value: unknown): void {
    const { trace, discard, set, errors } = delta.parse(value);
    if (discard) {
      this.traces.delete(trace);
      this.errors.delete(trace);
      return;
    }
    this.traces.set(trace, { ...this.traces.get(trace), ...set });
    const last = errors?.at(-1);
    if (last) this.errors.set(trace, last);
  }

  /** Returns the episode. @throws Error if the server failed it, or if a trace is missing */
  finish(value: unknown): RunEnd {
    const { success, error, head, traces } = reply.parse(value);
    if (!success || !head) throw new Error(error ?? 'the server gave no reason');
    const ended = (traces ?? []).map(({ id }): EndedTrace => {
      const found = this.traces.get(id);
      if (!found) throw new Error(`the server did not send the trace ${id}`);
      const { agent, rewards, metrics, stop_condition } = traceFields.parse(found);
      return {
        agent: agent?.name ?? 'agent',
        isTrained: agent?.trainable ?? true,
        rewards: withoutNull(rewards, each => each.score * each.weight),
        metrics: withoutNull(metrics, each => each),
        stopped: stop_condition,
      };
    });
    const failed = head.errors.at(-1) ?? (head.ok ? undefined : [...this.errors.values()].at(-1));
    return { traces: ended, error: failed && `${failed.type}: ${failed.message}` };
  }
}

/** An episode that a server plays. */
export class ServedRun {
  private readonly id = randomUUID().replaceAll('-', '');
  private readonly assembly = new TraceAssembly();
  private settle: { resolve(end: RunEnd): void; reject(error: Error): void } | undefined;
  /** Resolves when the episode is over. Rejected if the server fails it or is lost. */
  readonly ended = new Promise<RunEnd>((resolve, reject) => (this.settle = { resolve, reject }));

  private constructor(
    private readonly address: string,
    private readonly socket: { current?: DealerSocket },
  ) {
    this.ended.catch(() => undefined); // the episode reports the error
  }

  /**
   * Starts an episode.
   * @param address `tcp://host:port`
   * @throws Error if the server cannot be reached
   */
  static async start(address: string, { task, url }: RunRequest, timeoutMs: number): Promise<ServedRun> {
    const socket: { current?: DealerSocket } = {};
    const run = new ServedRun(address, socket);
    const handlers = {
      onMessage: (parts: Uint8Array[]) => run.receive(parts),
      onEnd: (problem: string) => run.fail(problem),
    };
    socket.current = await connectTo(address, timeoutMs, handlers).catch((error: unknown) => {
      throw new Error(aboutServer(address, (error as Error).message));
    });
    // The server's client is `eval`, because the ids and log-probs are recorded here. `api_key_var` names no variable of
    // the server: the address contains the secret.
    const client = { type: 'eval', base_url: url, api_key_var: 'RAGEN_NO_KEY' };
    run.send('run', run.id, { task_data: task, client, model: 'policy', sampling: {} });
    return run;
  }

  /** Ends the connection, and the episode if it still runs. */
  close(): void {
    if (this.settle) this.send('cancel', randomUUID(), { request_id: this.id });
    this.settle = undefined;
    this.socket.current?.close();
  }

  private send(method: string, id: string, content: Record<string, unknown>): void {
    this.socket.current?.send([Buffer.from(id), Buffer.from(method), encode(content)]);
  }

  private receive(parts: Uint8Array[]): void {
    const [id, kind] = parts.map(part => Buffer.from(part).toString('utf8', 0, 64));
    if (parts.length !== 3 || id !== this.id) return; // the reply to a cancellation
    try {
      const content = decode(parts[2]);
      if (kind === 'delta') return this.assembly.apply(content);
      const end = this.assembly.finish(content);
      this.settle?.resolve(end);
      this.settle = undefined;
    } catch (error) {
      this.fail(`failed the episode: ${reasonOf(error)}`);
    }
  }

  private fail(problem: string): void {
    this.settle?.reject(new Error(aboutServer(this.address, problem)));
    this.settle = undefined;
  }
}

/** Asks a server whether it runs. @throws Error if it cannot be reached or does not answer */
export async function checkServer(address: string, timeoutMs: number): Promise<void> {
  let settle: (problem?: string) => void;
  const answered = new Promise<string | undefined>(resolve => (settle = resolve));
  const socket = await connectTo(address, timeoutMs, { onMessage: () => settle(), onEnd: problem => settle(problem) });
  const timer = setTimeout(() => settle(`did not answer within ${timeoutMs / 1000} s`), timeoutMs);
  socket.send([Buffer.from('health'), Buffer.from('health'), encode({})]);
  const problem = await answered;
  clearTimeout(timer);
  socket.close();
  if (problem !== undefined) throw new Error(problem);
}

const aboutServer = (address: string, problem: string): string => `The verifiers server ${address} ${problem}`;

function connectTo(
  address: string,
  timeoutMs: number,
  handlers: { onMessage(parts: Uint8Array[]): void; onEnd(problem: string): void },
): Promise<DealerSocket> {
  const { hostname, port } = new URL(address);
  return DealerSocket.connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), timeoutMs, ...handlers });
}

const withoutNull = <T>(values: Record<string, T | null>, valueOf: (value: T) => number): Record<string, number> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, valueOf(value)]])),
  );

function reasonOf(error: unknown): string {
  if (!(error instanceof z.ZodError)) return (error as Error).message;
  const [{ path, message }] = error.issues;
  return `its message has an unexpected form at ${path.join('.') || 'the top'} (${message}); version 0.4 of verifiers is known`;
}
