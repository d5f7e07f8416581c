// Removes secrets from messages to watchers and clients. The secrets are removed before a message is encoded, because
// the header of the encoded message contains the length of the text.
import type { MessageWriter } from 'vscode-jsonrpc/node';
import { secrets } from './secrets';

/** Changes `writer` so that it removes secrets from every message; returns the same object. */
export function clearedWriter(writer: MessageWriter): MessageWriter {
  const write = writer.write.bind(writer);
  writer.write = message => write(secrets.value(message));
  return writer;
}
