// Retries: whichever message is lost, the episode equals one over a working connection, and no session receives a step
// twice.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NotTaken, SessionLost, type RemotePeer, type RemoteState } from '../../../../envs/remote/peer';
import { RemoteEpisode, waitBefore } from '../../../../envs/remote/remote-episode';

type Trouble = 'not taken' | 'lost on the way there' | 'lost on the way back' | 'none';

/** A server whose state is the list of received messages; `next` decides the fate of each request. */
function server(next: () => Trouble, drift = () => '') {
  const sessions: { received: string[]; closed: boolean }[] = [];
  async function carried<T>(apply: () => T): Promise<T> {
    const trouble = next();
    if (trouble === 'not taken') throw new NotTaken('full');
    if (trouble === 'lost on the way there') throw new SessionLost('reset');
    const result = apply();
    if (trouble === 'lost on the way back') throw new SessionLost('no answer');
    return result;
  }
  const peer: RemotePeer = {
    missing: async () => undefined,
    describe: async () => ({ instruction: '' }),
    open: () =>
      carried(() => {
        const session = { received: [] as string[], closed: false };
        sessions.push(session);
        const state = (): RemoteState => {
          const text = session.received.join(' ') + drift();
          return { text, images: [], reward: session.received.length, done: false, truncated: false, info: {} };
        };
        const record = (request: string) =>
          carried(() => {
            session.received.push(request);
            return state();
          });
        return {
          reset: ({ seed }) => record(`seed ${seed}`),
          step: action => record(action),
          close: async () => void (session.closed = true),
        };
      }),
  };
  return { peer, sessions };
}

const options = { seed: 3, member: 0, mode: 'train' as const };
const retry = { url: 'http://server', retries: 8, backoff: 0 };

describe('an episode over a failing connection', () => {
  it('equals the uninterrupted one, and no session receives a step twice', async () => {
    const troubles = fc.array(
      fc.constantFrom<Trouble>(
        'not taken',
        'lost on the way there',
        'lost on the way back',
        'none',
        'none',
        'none',
        'none',
      ),
      { maxLength: 40 },
    );
    await fc.assert(
      fc.asyncProperty(troubles, fc.nat(6), async (list, length) => {
        const waiting = [...list];
        const { peer, sessions } = server(() => waiting.shift() ?? 'none');
        const episode = new RemoteEpisode(peer, options, { ...retry, retries: list.length });
        const actions = [...Array(length).keys()].map(i => `action ${i}`);
        expect((await episode.begin()).text).toBe('seed 3');
        for (const [i, action] of actions.entries())
          expect((await episode.step(action)).text).toBe(['seed 3', ...actions.slice(0, i + 1)].join(' '));
        const whole = ['seed 3', ...actions];
        for (const { received } of sessions) expect(received).toEqual(whole.slice(0, received.length));
        await episode.close();
        expect(sessions.every(({ closed, received }) => closed || received.length === 0)).toBe(true);
      }),
      { numRuns: 300, seed: 5 },
    );
  });

  it('ends in one sentence when the connection stays broken', async () => {
    const waiting: Trouble[] = ['none', 'none'];
    const { peer } = server(() => waiting.shift() ?? 'lost on the way there');
    const episode = new RemoteEpisode(peer, options, { ...retry, retries: 2 });
    await episode.begin();
    await expect(episode.step('a')).rejects.toMatchObject({
      name: 'MissingDependency',
      message: 'got no response from the server at http://server after 3 requests (reset)',
      remedy: 'check the server, or raise env_config.timeout or env_config.retries',
    });
  });

  it('is abandoned when the server does not replay it identically', async () => {
    let count = 0;
    const waiting: Trouble[] = ['none', 'none', 'none', 'lost on the way back'];
    const { peer } = server(
      () => waiting.shift() ?? 'none',
      () => ` ${count++}`,
    );
    const episode = new RemoteEpisode(peer, options, retry);
    await episode.begin();
    await episode.step('a');
    await expect(episode.step('b')).rejects.toMatchObject({
      message: expect.stringMatching(/a replay of the episode gave another result \(the first observation differs/),
    });
  });

  it('is not retried when the server refuses', async () => {
    let asked = 0;
    const { peer } = server(() => {
      if (++asked > 2) throw new Error('bad action');
      return 'none';
    });
    const episode = new RemoteEpisode(peer, options, retry);
    await episode.begin();
    await expect(episode.step('a')).rejects.toMatchObject({
      message: 'was refused by the server at http://server (bad action)',
    });
    expect(asked).toBe(3);
  });
});

it('doubles the wait each time, up to a minute, with jitter by the seed', () => {
  expect([1, 2, 3].map(retry => waitBefore(retry, 2, 0))).toEqual([1.4, 2.8, 5.6]);
  expect(waitBefore(30, 2, 0)).toBe(42);
  const waits = [...Array(100).keys()].map(seed => waitBefore(1, 1, seed));
  expect(Math.min(...waits)).toBeGreaterThanOrEqual(0.7);
  expect(Math.max(...waits)).toBeLessThan(1.3);
  expect(new Set(waits).size).toBe(100);
});
