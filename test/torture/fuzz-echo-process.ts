// Replaces an environment process in the fuzzer. It first sends the reply contained in the tag of the first episode,
// with the request's `id`, and with the request's `method` if the tag sets no other. If that reply did not answer the
// request, it then sends a correct reply.
import { Socket } from 'node:net';
import { isRecord, jsonOrNothing } from '../../extension/common/json';
import { FrameChannel, channelDescriptor } from '../../extension/node/frame-channel';
import type { EnvironmentRequest } from '../../extension/protocol/environment-link';

const channel = new FrameChannel(new Socket({ fd: channelDescriptor }), {
  broken: () => process.exit(),
  message: message => {
    const request = message as EnvironmentRequest;
    const { id, method } = request;
    if (method === 'shutdown') process.exit();
    const resets = method === 'reset' ? request.episodes : [];
    if (resets.length > 0) {
      const [{ tag }] = resets;
      const said = jsonOrNothing(tag) ?? tag;
      channel.send(isRecord(said) ? { ...said, id, method: said.method ?? method } : said);
      if (isRecord(said) && (said.method ?? method) === method && said.more !== true) return;
    }
    const episodes = resets.map(({ episode }) => ({ episode, observation: '', version: 'v' }));
    channel.send({ id, method, episodes, environments: [], covered: [], threads: [] });
  },
});
