// Entry of the environment process, forked by the trainer with `serialization: 'advanced'`: requests come in and replies go out over the
// IPC channel. The process ends with its trainer, and takes whatever environments have spawned with it.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EnvironmentNotice, EnvironmentReply, EnvironmentRequest } from '../protocol/environment-link';
import { EnvironmentHost } from './host';

const send = (message: EnvironmentReply | EnvironmentNotice, sent?: () => void) => {
  if (process.connected) process.send?.(message, undefined, undefined, sent);
};
const host = new EnvironmentHost(join(dirname(fileURLToPath(import.meta.url)), 'environment-worker.cjs'), send);

process.on('message', async (request: EnvironmentRequest) => {
  const reply = await host.answer(request);
  send(reply, reply.method === 'shutdown' ? endTree : undefined);
});
process.on('disconnect', endTree);

/** Ends this process and, where it leads a process group, all that environments have started. */
function endTree(): void {
  try {
    if (process.platform !== 'win32') process.kill(-process.pid, 'SIGKILL');
  } catch {
    // not the leader of a group: nothing but this process to end
  }
  process.exit(0);
}
