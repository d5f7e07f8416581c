// The environment `verifiers` against a peer: the messages that a real server sent (test/golden/verifiers), and servers
// that are missing, foreign, lost or wrong.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encode } from '@msgpack/msgpack';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Environment } from '../../../../envs/api/environment';
import { callOf, replyAction } from '../../../../envs/api/model-calls';
import verifiers from '../../../../envs/verifiers/index';
import { temporaryFolder } from '../../../support/temporary-folder';
import {
  recordedMessages,
  startOther,
  startVerifiersPeer,
  type PeerRequest,
  type VerifiersPeer,
} from '../../../support/verifiers-peer';

const folder = temporaryFolder();
const peers: VerifiersPeer[] = [];
let environments: Environment[] = [];

beforeEach(() => {
  environments = [];
  writeFileSync(join(folder(), 'tasks.jsonl'), '{"letter":"a"}\n{"letter":"b"}\n');
});
afterEach(async () => {
  for (const environment of environments) await environment.close?.();
  for (const peer of peers.splice(0)) await peer.close();
});

const parsed = (config: Record<string, unknown>) =>
  verifiers.config.parse({ folder: folder(), tasks: 'tasks.jsonl', connect_timeout: 5, ...config });

function opened(peer: VerifiersPeer, config: Record<string, unknown> = {}): Environment {
  peers.push(peer);
  const environment = verifiers.create(parsed({ server: peer.address, ...config }));
  environments.push(environment);
  return environment;
}

const reply = (content: string) =>
  replyAction({ content, tool_calls: [], finish: 'stop', prompt_tokens: 5, completion_tokens: 1 });

/** Calls the policy as an agent of the server would; resolves to the reply's text. */
async function call({ content }: PeerRequest, prompt: string): Promise<string> {
  const { base_url } = content.client as { base_url: string };
  const response = await fetch(`${base_url}/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: content.model, messages: [{ role: 'user', content: prompt }] }),
  });
  const body = (await response.json()) as { choices: { message: { content: string } }[] };
  return body.choices[0].message.content;
}

/** A server whose episodes make one call, and then send `messages`. */
const afterOneCall = (end: (request: PeerRequest, reply: string) => void): Promise<VerifiersPeer> =>
  startVerifiersPeer(request => {
    if (request.method !== 'run') return;
    const { letter } = request.content.task_data as { letter: string };
    void call(request, `Say ${letter}.`).then(
      reply => end(request, reply),
      () => undefined,
    );
  });

const finished = { success: true, error: null, head: { ok: true, errors: [] }, traces: [{ id: 't' }] };
const trace = (set: Record<string, unknown>) => ({ trace: 't', set });

describe('an episode', () => {
  test('ends with the reward and the metrics that a real server sent', async () => {
    const environment = opened(
      await afterOneCall(({ sendRaw }) => recordedMessages().forEach(([kind, content]) => sendRaw(kind, content))),
    );
    const { observation } = await environment.reset({ seed: 3 });
    expect(callOf(observation as string)!.messages).toEqual([{ role: 'user', content: 'Say b.' }]);
    expect(await environment.step(reply('bear'))).toEqual({
      observation: 'The environment has ended the episode.',
      reward: 2,
      terminated: true,
      truncated: false,
      info: { begins: 2, characters: 10, success: true },
    });
  });

  test('has the reply to each call, and the task of its seed', async () => {
    const heard: string[] = [];
    const peer = await afterOneCall(({ send }, text) => {
      heard.push(text);
      send('delta', trace({ rewards: { exact: { score: Number(text === 'ape'), weight: 0.5 } } }));
      send('reply', finished);
    });
    const environment = opened(peer);
    for (const [seed, text] of [
      [0, 'ape'],
      [1, 'ape'],
      [2, 'cat'],
    ] as const) {
      const { observation } = await environment.reset({ seed });
      expect(callOf(observation as string)!.messages[0].content).toBe(seed === 1 ? 'Say b.' : 'Say a.');
      expect((await environment.step(reply(text))).reward).toBe(text === 'ape' ? 0.5 : 0);
    }
    expect(heard).toEqual(['ape', 'ape', 'cat']);
  });

  test('has the mean reward of the trained agents, or of those that are named', async () => {
    const end = ({ send }: PeerRequest): void => {
      const agents = [
        ['a', 'solver', true, 1],
        ['b', 'solver', true, 0],
        ['c', 'judge', false, 5],
        ['d', 'dropped', true, 9],
      ] as const;
      for (const [id, name, trainable, score] of agents)
        send('delta', { trace: id, set: { agent: { name, trainable }, rewards: { r: { score, weight: 1 } } } });
      send('delta', { trace: 'd', discard: true });
      send('reply', { ...finished, traces: [{ id: 'a' }, { id: 'b' }, { id: 'c' }] });
    };
    const rewards = [];
    for (const agents of [null, ['judge'], ['solver', 'judge']]) {
      const environment = opened(await afterOneCall(end), { agents });
      await environment.reset({ seed: 0 });
      rewards.push((await environment.step(reply('x'))).reward);
    }
    expect(rewards).toEqual([0.5, 5, 2]);
    const environment = opened(await afterOneCall(end), { agents: ['critic'] });
    await environment.reset({ seed: 0 });
    await expect(environment.step(reply('x'))).rejects.toThrow(
      "No agent of env_config.agents (critic) has a reward: the episode's agents are solver, judge",
    );
  });

  test('is truncated where a limit ended it', async () => {
    const environment = opened(
      await afterOneCall(({ send }) => {
        send('delta', trace({ stop_condition: 'max_turns', rewards: { r: { score: 0.25, weight: 1 } } }));
        send('reply', finished);
      }),
    );
    await environment.reset({ seed: 0 });
    expect(await environment.step(reply('x'))).toMatchObject({ reward: 0.25, terminated: false, truncated: true });
  });

  test('that is closed is cancelled on the server', async () => {
    const cancelled = new Promise<unknown>(resolve => {
      void startVerifiersPeer(request => {
        if (request.method === 'cancel') resolve(request.content.request_id);
        else void call(request, request.id).catch(() => undefined);
      }).then(async peer => {
        const environment = opened(peer);
        const { observation } = await environment.reset({ seed: 0 });
        asked = callOf(observation as string)!.messages[0].content;
        await environment.close!();
      });
    });
    let asked = '';
    expect(await cancelled).toBe(asked);
  });
});

describe('a failure ends the episode with one sentence', () => {
  /** The error of the step after the first call. */
  async function stepError(end: (request: PeerRequest) => void): Promise<string> {
    const peer = await afterOneCall(end);
    const environment = opened(peer);
    await environment.reset({ seed: 0 });
    const error = await Promise.resolve(environment.step(reply('x'))).then(
      () => new Error('the step threw no error'),
      (error: unknown) => error as Error,
    );
    return error.message.replace(peer.address, 'tcp://peer');
  }

  test.each<[string, (request: PeerRequest) => void, string]>([
    [
      'the server refuses the task',
      ({ send }) => send('reply', { success: false, error: 'ValueError: no letter' }),
      'The verifiers server tcp://peer failed the episode: ValueError: no letter',
    ],
    [
      'the agent fails',
      ({ send }) => {
        send('delta', { ...trace({ rewards: { r: null } }), errors: [{ type: 'HarnessError', message: 'exit 1' }] });
        send('reply', { ...finished, head: { ok: false, errors: [] } });
      },
      'The episode failed on the verifiers server: HarnessError: exit 1',
    ],
    [
      'no agent is scored',
      ({ send }) => {
        send('delta', trace({}));
        send('reply', finished);
      },
      "No agent of the episode has a reward: the episode's agents are agent",
    ],
    [
      'a trace is missing',
      ({ send }) => send('reply', finished),
      'The verifiers server tcp://peer failed the episode: the server did not send the trace t',
    ],
    [
      'a message has another form',
      ({ send }) => send('reply', { success: 'yes' }),
      'The verifiers server tcp://peer failed the episode: its message has an unexpected form at success (Invalid input: expected boolean, received string); version 0.4 of verifiers is known',
    ],
    [
      'a message is no MessagePack',
      ({ sendRaw }) => sendRaw('reply', Uint8Array.of(0xc1)),
      'The verifiers server tcp://peer failed the episode: Unrecognized type byte: 0xc1',
    ],
    [
      'a frame has unknown flags',
      ({ socket }) => void socket.write(Uint8Array.of(0x80, 0)),
      'The verifiers server tcp://peer sent a frame with the unknown flags 128',
    ],
    [
      'a frame is too long',
      ({ socket }) => void socket.write(Uint8Array.of(2, 0, 0, 1, 0, 0, 0, 0, 0)),
      'The verifiers server tcp://peer sent a frame of 1099511627776 bytes, expected at most 268435456',
    ],
    ['the server ends', ({ socket }) => void socket.end(), 'The verifiers server tcp://peer closed the connection'],
  ])('%s', async (_, end, message) => {
    expect(await stepError(end)).toBe(message);
  });

  test('messages for others are ignored', async () => {
    const environment = opened(
      await afterOneCall(({ send, socket }) => {
        const other = [Buffer.from('other'), Buffer.from('reply'), Buffer.from(encode(finished))];
        socket.write(
          Buffer.concat(other.map((body, i) => Buffer.concat([Buffer.from([i < 2 ? 1 : 0, body.length]), body]))),
        );
        send('delta', trace({ rewards: { r: { score: 1, weight: 1 } } }));
        send('reply', finished);
      }),
    );
    await environment.reset({ seed: 0 });
    expect((await environment.step(reply('x'))).reward).toBe(1);
  });

  test('an episode without a call, and one that takes too long', async () => {
    const silent = opened(
      await startVerifiersPeer(({ method, send }) => {
        if (method === 'run')
          send('reply', {
            ...finished,
            traces: [],
            head: { ok: false, errors: [{ type: 'TaskError', message: 'no data' }] },
          });
      }),
    );
    await expect(silent.reset({ seed: 0 })).rejects.toThrow(
      'The episode ended without a call of the policy: TaskError: no data',
    );
    const slow = opened(await startVerifiersPeer(() => undefined), { time_limit: 0.05 });
    await expect(slow.reset({ seed: 0 })).rejects.toThrow(
      'No call of the policy within 0.05 s: raise env_config.time_limit',
    );
    const late = opened(await afterOneCall(() => undefined), { time_limit: 2 });
    await late.reset({ seed: 0 });
    expect(await late.step(reply('x'))).toMatchObject({
      observation: 'The episode was ended, because the server took longer than 2 s.',
      reward: 0,
      truncated: true,
      info: { success: false },
    });
  });
});

describe('before the first episode', () => {
  const problemOf = async (config: Record<string, unknown>): Promise<string> => {
    try {
      await verifiers.dependencies!(parsed(config));
    } catch (error) {
      expect(error).toMatchObject({ name: 'MissingDependency' });
      return (error as Error).message;
    }
    return 'none';
  };

  test('a server that answers is accepted', async () => {
    const peer = await startVerifiersPeer(() => undefined);
    peers.push(peer);
    expect(await problemOf({ server: peer.address })).toBe('none');
    expect(peer.methods).toEqual(['health']);
  });

  test('missing tasks are reported', async () => {
    expect(await problemOf({ tasks: null })).toBe('has no tasks');
    expect(await problemOf({ tasks: 'none.jsonl' })).toContain(
      `cannot read the tasks in ${join(folder(), 'none.jsonl')}`,
    );
  });

  test('a missing or foreign server is reported', async () => {
    const gone = await startOther(() => undefined);
    await gone.close();
    expect(await problemOf({ server: gone.address })).toMatch(
      /^cannot use the server tcp:\/\/127\.0\.0\.1:\d+, which cannot be reached \(connect ECONNREFUSED .*\)$/,
    );
    const plain = Buffer.alloc(64);
    plain.set([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1]);
    const named = (mechanism: string) =>
      Buffer.concat([plain.subarray(0, 12), Buffer.from(mechanism.padEnd(52, '\0'))]);
    const old = Buffer.from(named('NULL'));
    old[10] = 2;
    for (const [bytes, problem] of [
      [Buffer.from('HTTP/1.1 400 Bad Request\r\n\r\n'), 'does not speak ZeroMQ'],
      [named('CURVE'), 'asks for the authentication CURVE, which is not supported'],
      [old, "speaks version 2 of ZeroMQ's protocol, expected 3"],
      [
        Buffer.concat([
          named('NULL'),
          Buffer.from([4, 9, 5]),
          Buffer.from('ERROR'),
          Buffer.from([2]),
          Buffer.from('no'),
        ]),
        'refused the connection (no)',
      ],
    ] as const) {
      const peer = await startOther(socket => socket.write(bytes));
      peers.push(peer);
      expect(await problemOf({ server: peer.address })).toBe(`cannot use the server ${peer.address}, which ${problem}`);
    }
    const silent = await startOther(() => undefined);
    peers.push(silent);
    expect(await problemOf({ server: silent.address, connect_timeout: 0.1 })).toBe(
      `cannot use the server ${silent.address}, which was not ready within 0.1 s`,
    );
  });
});
