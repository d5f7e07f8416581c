// JSON-RPC over a socket. The process at the other end is untrusted and may stop in the middle of a message. The size
// of an incomplete message is bounded, and an incomplete message does not keep this process alive. At each incomplete
// message, vscode-jsonrpc's reader starts a repeating timer, which would keep this process alive after the socket is
// closed. The timer is therefore disabled for all readers.
import type { Socket } from 'node:net';
import { createMessageConnection, SocketMessageReader, SocketMessageWriter } from 'vscode-jsonrpc/node';
import type { MessageConnection, MessageWriter, StreamMessageReader } from 'vscode-jsonrpc/node';

/** Default maximum bytes of a message. */
const largestMessage = 2 ** 26;

/**
 * Returns a connection over a socket. The socket is destroyed if more than `mostBytes()` arrive without completing a
 * message, or if the input is invalid. `outgoing` returns the writer to use: the given writer or a wrapper around it.
 * The caller must call `listen`, and dispose of the connection when the socket closes.
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

/** Disables the reader's timer for incomplete messages. */
export function withoutTimer<Reader extends SocketMessageReader | StreamMessageReader>(reader: Reader): Reader {
  reader.partialMessageTimeout = 0;
  return reader;
}
