// JSON-RPC over the standard input and output of a child process, by vscode-jsonrpc. Aborting the sender's signal
// cancels the request and aborts the signal of the request's handler.
import type { Readable, Writable } from 'node:stream';
import {
  CancellationTokenSource,
  createMessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
  type CancellationToken,
  type MessageConnection,
  type MessageWriter,
  type RequestType,
} from 'vscode-jsonrpc/node';
import { withoutTimer } from './socket-messages';

/**
 * Returns a connection over two streams. `outgoing` returns the writer to use: the given writer or a wrapper around it.
 * Errors of the streams are ignored, because events of the child process report the same failures. The caller must call
 * `listen`.
 */
export function stdioMessages(
  input: Readable,
  output: Writable,
  outgoing: (writer: MessageWriter) => MessageWriter = writer => writer,
): MessageConnection {
  const connection = createMessageConnection(
    withoutTimer(new StreamMessageReader(input)),
    outgoing(new StreamMessageWriter(output)),
  );
  connection.onError(() => undefined);
  return connection;
}

/**
 * Sends a request and returns its result. Aborting `signal` cancels the request. If the signal was aborted before the
 * call, its reason is thrown.
 */
export async function sendRequest<P, R, E>(
  connection: MessageConnection,
  { method }: RequestType<P, R, E>,
  params: P,
  signal?: AbortSignal,
): Promise<R> {
  const cancel = new CancellationTokenSource();
  const stop = (): void => cancel.cancel();
  signal?.addEventListener('abort', stop, { once: true });
  try {
    signal?.throwIfAborted();
    return await connection.sendRequest<R>(method, params, cancel.token);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/**
 * Registers the handler of a request. A cancelled request is answered immediately, although `work` may continue.
 * `errorOf` converts an error of `work` to the error that is sent.
 */
export function onRequest<P, R, E>(
  connection: MessageConnection,
  { method }: RequestType<P, R, E>,
  work: (params: P, signal: AbortSignal) => Promise<R>,
  errorOf: (error: unknown, signal: AbortSignal) => Error,
): void {
  connection.onRequest(method, async (params: P, token: CancellationToken) => {
    const controller = new AbortController();
    const { signal } = controller;
    const cancelled = new Promise<never>((_, reject) => {
      token.onCancellationRequested(() => {
        controller.abort();
        reject(new Error('cancelled'));
      });
    });
    cancelled.catch(() => undefined); // avoids an unhandled rejection
    try {
      return await Promise.race([work(params, signal), cancelled]);
    } catch (error) {
      throw errorOf(error, signal);
    }
  });
}
