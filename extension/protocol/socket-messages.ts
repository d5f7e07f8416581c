// JSON-RPC over a socket whose other end may send anything and may stop in the middle of a message: what is held of an unfinished message is
// bounded, and nothing waits for the rest of it. vscode-jsonrpc's reader begins a timer at each unfinished message, which begins itself
// again for ever and keeps the process alive after the socket is gone: it is switched off wherever messages are read.
import type { Socket } from 'node:net';
import { createMessageConnection, SocketMessageReader, SocketMessageWriter } from 'vscode-jsonrpc/node';
import type { MessageConnection, MessageWriter, StreamMessageReader } from 'vscode-jsonrpc/node';

/** Bytes of a message, unless something else is said. */
const largestMessage = 2 ** 26;

/**
 * A connection over a socket, which is destroyed when more than `mostBytes()` come in without a message being complete, or when what comes
 * is no message. `outgoing` may wrap the writer. The caller listens, and disposes of it when the socket closes.
 */
export function socketMessages(
  socket: Socket,
  mostBytes: () => number = () => largestMessage,
  outgoing: (writer: MessageWriter) => MessageWriter = writer => writer,
): MessageConnection {
  let pending = 0;
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    pending += chunk.length;
    if (pending > mostBytes()) socket.destroy();
  });
  const connection = createMessageConnection(
    withoutTimer(new SocketMessageReader(socket)),
    outgoing(new SocketMessageWriter(socket)),
    undefined,
    {
      messageStrategy: {
        handleMessage(message, next) {
          pending = 0;
          return next(message);
        },
      },
    },
  );
  connection.onError(() => socket.destroy());
  return connection;
}

/** The reader, without the timer that unfinished messages would begin. */
export function withoutTimer<Reader extends SocketMessageReader | StreamMessageReader>(reader: Reader): Reader {
  reader.partialMessageTimeout = 0;
  return reader;
}
