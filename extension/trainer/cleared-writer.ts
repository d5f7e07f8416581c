// Messages to whoever watches a run or asks about one, without secrets: cleared before they are encoded, since their length goes ahead.
import type { MessageWriter } from 'vscode-jsonrpc/node';
import { secrets } from './secrets';

/** The same writer, which clears each message. */
export function clearedWriter(writer: MessageWriter): MessageWriter {
  const write = writer.write.bind(writer);
  writer.write = message => write(secrets.value(message));
  return writer;
}
