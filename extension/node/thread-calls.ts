// Calls between a thread and a worker thread that it started: birpc over structured clones. If the worker ends, pending
// and later calls fail with the reason. Messages are not validated, because both threads run the product's own code.
// JSON-RPC (socket-messages.ts) is not used because it handles only one message per iteration of the event loop. In a
// thread that runs the engine, an iteration of the event loop lasts as long as a decoding step. With JSON-RPC, 64
// overlapping generations took 1.7 to 2.0 times as long, and a single call took 1.4 times as long.
import { createBirpc, type BirpcReturn } from 'birpc';
import type { MessagePort, Worker } from 'node:worker_threads';

type Functions<T> = { [K in keyof T]: (...args: never[]) => unknown };
type Arguments<F> = F extends (...args: infer A) => unknown ? A : never;
type Result<F> = F extends (...args: never[]) => infer R ? Promise<Awaited<R>> : never;

/** Conversion of errors between threads. By default, the other thread receives a plain Error with message and stack. */
export interface ErrorCodec {
  encode(error: Error): unknown;
  decode(encoded: unknown): Error;
}
const plainErrors: ErrorCodec = {
  encode: ({ message, stack }) => ({ message, stack }),
  decode: encoded => {
    const { message, stack } = encoded as Error;
    return Object.assign(new Error(message), { stack });
  },
};

/** A reply as posted by birpc: the result `r`, or the error `e`. */
interface Reply {
  t: 's';
  r?: unknown;
  e?: unknown;
}

/** For each result marked by `transferred`, the buffers to transfer. */
const moved = new WeakMap<object, ArrayBuffer[]>();

/**
 * Marks a result for transfer: the buffers of its typed arrays are moved instead of copied, and the sender can no
 * longer use them.
 */
export function transferred<T extends object>(result: T): T {
  moved.set(result, buffersOf(result));
  return result;
}

/** Returns the buffers of all typed arrays in a value, at any depth. */
function buffersOf(value: unknown): ArrayBuffer[] {
  if (ArrayBuffer.isView(value)) return [value.buffer as ArrayBuffer];
  if (typeof value !== 'object' || value === null) return [];
  return [...new Set(Object.values(value).flatMap(buffersOf))];
}

function connect<Remote extends object>(
  port: MessagePort | Worker,
  functions: object,
  { encode, decode } = plainErrors,
): BirpcReturn<Remote, object, false> {
  const coded =
    (code: (error: never) => unknown) =>
    (message: Reply | { t: 'q' }): Reply | { t: 'q' } =>
      message.t === 's' && 'e' in message ? { ...message, e: code(message.e as never) } : message;
  return createBirpc<Remote, object, false>(functions, {
    post: (message: Reply | { t: 'q' }) =>
      port.postMessage(message, (message.t === 's' && moved.get(message.r as object)) || []),
    on: receive => void port.on('message', receive),
    serialize: coded(encode),
    deserialize: coded(decode),
    onGeneralError: (_, method) => method !== undefined, // if a result cannot be cloned, an error is the reply
    bind: 'functions',
    proxify: false,
    timeout: -1,
  });
}

/**
 * In a worker thread: serves the methods of `functions`. Returns a function that calls a named function in the thread
 * that started the worker, and does not wait for a reply.
 */
export function serveCalls<Remote extends Functions<Remote>>(
  port: MessagePort,
  functions: object,
  errors?: ErrorCodec,
): <K extends keyof Remote>(method: K, ...args: Arguments<Remote[K]>) => void {
  const rpc = connect<Remote>(port, functions, errors);
  return (method, ...args) => void rpc.$callEvent(method, ...(args as never));
}

/** In the thread that started a worker: calls functions of the worker until `end` is called. */
export class WorkerCalls<Remote extends Functions<Remote>> {
  private readonly rpc: BirpcReturn<Remote, object, false>;
  private ended: Error | undefined;

  /** @param functions functions that the worker may call */
  constructor(worker: Worker, functions: object = {}, errors?: ErrorCodec) {
    this.rpc = connect<Remote>(worker, functions, errors);
  }

  /**
   * Returns the result of a function of the worker. Throws the function's error, or the reason why the worker ended.
   */
  async call<K extends keyof Remote>(method: K, ...args: Arguments<Remote[K]>): Promise<Awaited<Result<Remote[K]>>> {
    if (this.ended) throw this.ended;
    return (await this.rpc.$call(method, ...(args as never))) as Awaited<Result<Remote[K]>>;
  }

  /** Calls a function of the worker without waiting for a result; does nothing if the worker has ended. */
  notify<K extends keyof Remote>(method: K, ...args: Arguments<Remote[K]>): void {
    if (!this.ended) void this.rpc.$callEvent(method, ...(args as never));
  }

  /** Fails all pending and later calls with `reason`; a second call of `end` has no effect. */
  end(reason: Error): void {
    const ended = (this.ended ??= reason);
    void this.rpc.$rejectPendingCalls(({ reject }) => reject(ended));
  }
}
