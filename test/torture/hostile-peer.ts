// Replaces an environment process and attacks its channel at seeded moments; bundled and started by
// environment-channel.ts. Between attacks it replies correctly: the observation of an episode is the number of its
// actions. Each start uses a different random stream.
import { closeSync, readdirSync, writeFileSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { FrameChannel, channelDescriptor } from '../../extension/node/frame-channel';
import { framed, FrameWriter } from '../../extension/node/frames';
import type { EnvironmentReply, EnvironmentRequest, EpisodeStep } from '../../extension/protocol/environment-link';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { hostileActs, type HostileAct } from './hostile-acts';

const folder = process.env.RAGEN_HOSTILE_FOLDER!;
const start = readdirSync(folder).length;
writeFileSync(join(folder, String(start)), '');
const random = new RandomStream(Number(process.env.RAGEN_HOSTILE_SEED) * 10_007 + start);
/** Share of the requests that trigger an attack. */
const share = 0.2;

const pipe = new Socket({ fd: channelDescriptor });
const channel = new FrameChannel(pipe, {
  message: request => answer(request as EnvironmentRequest),
  broken: () => process.exit(),
});
const counts = new Map<string, number>();

function answer(request: EnvironmentRequest): void {
  if (request.method === 'shutdown') process.exit();
  const reply = rightReply(request);
  const plays = request.method === 'reset' || request.method === 'step';
  if (plays && random.uniform() < share)
    misbehave(hostileActs[Math.floor(random.uniform() * hostileActs.length)], reply);
  else channel.send(reply);
}

function rightReply(request: EnvironmentRequest): EnvironmentReply {
  const { id, method } = request;
  if (method === 'reset' || method === 'step')
    return {
      id,
      method,
      episodes: request.episodes.map(item => played(item.episode, 'actions' in item ? item.actions : undefined)),
    };
  if (method === 'load')
    return {
      id,
      method,
      environments: request.environments.map(({ tag, source }) => ({
        tag,
        source,
        name: tag,
        version: '0',
        bundle: '',
        files: [],
        config: {},
        instruction: '',
        legend: {},
        has_solver: false,
      })),
    };
  if (method === 'ping') return { id, method, threads: [] };
  return { id, method } as EnvironmentReply;
}

function played(episode: string, actions?: (number | string)[]): EpisodeStep {
  const count = actions ? counts.get(episode)! + actions.length : 0;
  counts.set(episode, count);
  const outcomes = (actions ?? []).map(action => ({
    action,
    reward: 0,
    terminated: false,
    truncated: false,
    info: {},
  }));
  return { episode, observation: `count ${count}`, version: '0', outcomes };
}

function misbehave(act: HostileAct, reply: EnvironmentReply): void {
  const bytes = (length: number): Buffer =>
    Buffer.from(Array.from({ length }, () => Math.floor(random.uniform() * 256)));
  const episodes = 'episodes' in reply ? (reply.episodes as EpisodeStep[]) : [];
  const raw = (buffer: Buffer) => pipe.write(buffer);
  const frame = Buffer.from(JSON.stringify(reply));
  switch (act) {
    case 'garbage':
      return void raw(bytes(1 + Math.floor(random.uniform() * 64)));
    case 'half a frame':
      raw(framed(frame, [], 0).subarray(0, 20 + Math.floor(random.uniform() * frame.length)));
      return void setTimeout(() => process.exit(), 20);
    case 'a frame twice':
      channel.send(reply);
      return channel.send(reply);
    case 'a frame of another sequence':
      return void raw(new FrameWriter().frame(reply));
    case 'an enormous frame': {
      const header = framed(frame, [], 0);
      header.writeUInt32LE(0xffffffff, 8 + 4 * Math.floor(random.uniform() * 2));
      return void raw(header);
    }
    case 'an answer that nobody asked for':
      return channel.send({ ...reply, id: reply.id + 1000 });
    case 'an answer for other episodes':
      return channel.send({ ...reply, episodes: episodes.map(state => ({ ...state, episode: 'other' })) });
    case 'an answer without its episodes':
      return channel.send({ ...reply, episodes: [] });
    case 'values without end':
      return channel.send({
        ...reply,
        episodes: episodes.map(state => ({ ...state, info: { list: new Array(2 ** 20 + 1).fill(0) } })),
      });
    case 'a key without end':
      return channel.send({
        ...reply,
        episodes: episodes.map(state => ({ ...state, info: { ['k'.repeat(2 ** 22)]: 0 } })),
      });
    case 'a flood of output':
      for (let i = 0; i < 40_000; i++) channel.send({ method: 'log', tag: '', stream: 'stdout', text: 'flood\n' });
      return channel.send(reply);
    case 'it stops':
      return void process.kill(process.pid, 'SIGSTOP');
    case 'it spins':
      for (;;);
    case 'it closes the channel':
      return closeSync(channelDescriptor);
    case 'it prints and dies':
      writeSync(2, 'last words\n');
      return process.abort();
  }
}
