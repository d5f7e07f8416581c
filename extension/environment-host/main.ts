// Entry of the environment process, forked by the trainer with `serialization: 'advanced'`: requests come in and replies go out over the
// IPC channel. Its argument is how many bytes it may hold. The process ends with its trainer, and takes whatever environments have
// spawned with it.
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endStarted, markVariable } from '../protocol/end-processes';
import type { EnvironmentNotice, EnvironmentReply, EnvironmentRequest } from '../protocol/environment-link';
import { EnvironmentHost } from './host';

process.env.ORT_DISABLE_TELEMETRY = '1'; // for environments that run a model of their own

const send = (message: EnvironmentReply | EnvironmentNotice, sent?: () => void) => {
  if (process.connected) process.send?.(message, undefined, undefined, sent);
};
const bundles = dirname(fileURLToPath(import.meta.url));
const files = { worker: join(bundles, 'environment-worker.cjs'), typeCheck: join(bundles, 'type-check-worker.cjs') };
const host = new EnvironmentHost(files, send, Number(process.argv[2] ?? Infinity));

process.on('message', async (request: EnvironmentRequest) => {
  const reply = await host.answer(request, send);
  send(reply, reply.method === 'shutdown' ? endAll : undefined);
});
process.on('disconnect', endAll);

/** Ends this process and all that environments have started: those that left its group first. */
function endAll(): void {
  if (process.platform !== 'win32') {
    endStarted(undefined, process.env[markVariable] ?? '');
    endStarted(process.pid, ''); // the group: this process too, where it leads one
  }
  process.exit(0);
}
