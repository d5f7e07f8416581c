// A teacher on a server of the Tinker API: its log-probs are those of the server's base model; outages, stops and errors.
// The server is the peer of the engine's tests.
import { afterEach, expect, test } from 'vitest';
import { RunStopped } from '../../../../extension/engine/run-stopped';
import { openTinkerTeacher } from '../../../../extension/trainer/distillation/tinker-teacher';
import type { RunConfig } from '../../../../extension/trainer/config/schema';
import { partial } from '../../../support/partial';
import { TinkerPeer, type PeerOptions } from '../../../support/tinker-peer';

const vocabSize = 16;
const ignored = (): void => undefined;
const samples = [
  { ids: Int32Array.of(3, 5, 9, 2), mask: Uint8Array.of(0, 1, 0, 1) },
  { ids: Int32Array.of(1, 1, 4), mask: Uint8Array.of(0, 0, 0) },
];

let peer: TinkerPeer;
let stop: AbortController;
let events: string[];
afterEach(() => peer.stop());

async function start(options: Partial<PeerOptions> = {}, server: { model?: string; KEY?: string } = {}) {
  peer = await TinkerPeer.start({ vocabSize, ...options });
  stop = new AbortController();
  events = [];
  const config = partial<RunConfig>({
    workbench: {
      distillation: { server: { url: `${peer.url}/`, model: server.model ?? null, api_key_env: 'KEY' } },
      ...{ engine_requests: 8, engine_outage_s: 2 },
    },
  });
  const journal = {
    event: (kind: string, message: string) => void events.push(`${kind}: ${message}`),
    update: ignored,
  };
  const about = { config, control: { stopped: stop.signal }, journal };
  return openTinkerTeacher(about, { KEY: server.KEY }, { first: 5, longest: 20 });
}

/** Log-prob of `next` after `last` under the peer's only model. */
function logprob(last: number, next: number): number {
  const [model] = peer.models.values();
  const row = model.table.subarray(last * vocabSize, (last + 1) * vocabSize);
  return row[next] - Math.log(row.reduce((sum, x) => sum + Math.exp(x), 0));
}

test("log-probs of trained tokens are those of the server's model, which is unloaded at the end", async () => {
  const teacher = await start();
  const [first, second] = await teacher.logprobs(samples, ignored);
  [0, logprob(3, 5), 0, logprob(9, 2)].forEach((expected, t) => expect(first[t]).toBeCloseTo(expected, 5));
  expect(second).toEqual(new Float32Array(3));
  expect(events).toEqual([`setting: the teacher is peer/bigram on ${peer.url}`]);
  expect([peer.sent('create_model'), peer.sent('forward'), peer.sent('optim_step')]).toEqual([1, 1, 0]);
  await teacher.close();
  expect(peer.models.size).toBe(0);
});

test('samples with pictures are refused before anything is sent', async () => {
  const teacher = await start();
  const shown = { ...samples[0], shows: [{ at: 0, picture: 'a.png' }] };
  await expect(teacher.logprobs([samples[1], shown], ignored)).rejects.toThrow(
    /^config: the teacher of workbench\.distillation\.server receives token ids alone, but the episodes show pictures: use a/,
  );
  expect(peer.sent('forward')).toBe(0);
  await teacher.close();
});

test('an outage is waited out', async () => {
  const teacher = await start();
  let failures = 2;
  peer.fault = path => (path === 'forward' && failures-- > 0 ? 'cut before' : undefined);
  const [first] = await teacher.logprobs(samples, ignored);
  expect(first[1]).toBeCloseTo(logprob(3, 5), 5);
  await teacher.close();
});

test('a stop ends a pending call', async () => {
  const teacher = await start();
  peer.fault = path => (path === 'forward' ? (stop.abort(), 'silent') : undefined);
  await expect(teacher.logprobs(samples, ignored)).rejects.toThrow(RunStopped);
  peer.fault = () => undefined;
  await teacher.close();
});

test.each([
  [
    { offers: ['a', 'b'] },
    {},
    /^config: workbench\.distillation\.server\.model is null, but http\S+ offers a, b: set it/,
  ],
  [
    { key: 'right' },
    {},
    /requires an API key \(.*\): set the variable that workbench\.distillation\.server\.api_key_env names/,
  ],
  [
    { key: 'right' },
    { KEY: 'no' },
    /refuses the key \(.*\): correct the variable that workbench\.distillation\.server\./,
  ],
])('errors name the keys of the teacher: %j, %j', async (options, server, sentence) => {
  await expect(start(options, server)).rejects.toThrow(sentence);
});
