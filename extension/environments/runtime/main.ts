// Entry point of the environment process, which the trainer starts. Requests and replies are frames over the pipe on
// file descriptor 3. The only argument is the memory limit in bytes. When the trainer exits, this process exits too and
// ends all processes that environments have started.
import { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { EnvironmentRequest } from '../../protocol/environment-link';
import { FrameChannel, channelDescriptor } from '../../node/frame-channel';
import { endAll } from './end-all';
import { EnvironmentHost } from './environment-host';
import { ReplySender } from './reply-sender';

process.env.ORT_DISABLE_TELEMETRY = '1'; // no telemetry from environments with an ONNX model

const bundles = dirname(fileURLToPath(import.meta.url));
const files = { worker: join(bundles, 'environment-worker.cjs'), typeCheck: join(bundles, 'type-check-worker.cjs') };
const pipe = new Socket({ fd: channelDescriptor, readable: true, writable: true });
const channel = new FrameChannel(pipe, {
  message: message => void answer(message as EnvironmentRequest),
  broken: (why, ended) => {
    if (!ended) process.stderr.write(`Error: the trainer ${why}: environment code read data from the channel\n`);
    endAll(ended ? 0 : 1);
  },
});
const sender = new ReplySender((message, sent) => channel.send(message, sent));
const host = new EnvironmentHost(files, notice => sender.notice(notice), Number(process.argv[2] ?? Infinity));

async function answer(request: EnvironmentRequest): Promise<void> {
  const reply = await host.answer(request, part => sender.reply(part));
  sender.reply(reply, reply.method === 'shutdown' ? () => endAll(0) : undefined);
}
