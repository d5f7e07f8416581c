// Removes secrets from messages sent to watchers and clients. This happens before encoding, since the encoded length
// precedes each message.
import type { MessageWriter } from 'vscode-jsonrpc/node';
import { secrets } from './secrets';

/** Makes `writer` clear every message of secrets; returns the same object. */
export function clearedWriter(writer: MessageWriter): MessageWriter {
  const write = writer.write.bind(writer);
  writer.write = message => write(secrets.value(message));
  return writer;
}
