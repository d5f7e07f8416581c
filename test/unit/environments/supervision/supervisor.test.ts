// The supervisor with a fake runtime, on simulated time. Each call has one result however often the runtime ends, the
// episodes are replayed in a new runtime, and only the episode that ended the runtime fails.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { EpisodeHistory, type EpisodeStart } from '../../../../extension/environments/supervision/episode-history';
import {
  Supervisor,
  type Blame,
  type Ending,
  type Runtime,
} from '../../../../extension/environments/supervision/supervisor';

/** Behaviour of a call: it returns after `ms` milliseconds, or ends the runtime at that time. */
interface Act {
  ms?: number;
  /** How often the call ends the runtime before it returns. */
  ends?: number;
  /** Episodes that the runtime names as the cause of the ending. */
  blame?: Blame;
}

/** A fake runtime that counts the actions of each episode. Each call is an action of its episode. */
class FakeRuntime implements Runtime<string> {
  readonly supervisor = new Supervisor<string>(this);
  readonly history = new EpisodeHistory<EpisodeStart, null>();
  readonly log: string[] = [];
  running = false;
  /** Reasons with which the next starts fail. */
  refusals: Ending<string>[] = [];
  /** Behaviour of the replay of an episode, and of loading the code. */
  replayActs = new Map<string, Act>();
  loadActs: Act[] = [];
  private counts = new Map<string, number>();
  private open = new Set<(ending: Ending<string>) => void>();

  constructor(
    readonly repeatsTogether: boolean,
    readonly separate?: () => void,
  ) {}

  async start() {
    await wait(10);
    const refusal = this.refusals.shift();
    this.log.push(refusal ? 'refused' : 'started');
    if (refusal) return refusal;
    this.running = true;
    this.counts = new Map();
    return undefined;
  }

  replays(leaving: ReadonlySet<string>) {
    const episodes = this.history.live().map(({ start }) => start.episode);
    const load = () => this.perform([['load', this.loadActs.shift() ?? {}]], () => undefined);
    return [{ load, episodes: episodes.filter(episode => !leaving.has(episode)) }];
  }

  replay(episodes: readonly string[]) {
    this.log.push(`replays ${episodes.join(' ')}`);
    const acts = episodes.map(episode => [episode, this.replayActs.get(episode) ?? {}] as const);
    return this.perform(acts, episode => this.counts.set(episode, this.history.get(episode)!.actions.length));
  }

  lose(episode: string, cause: string) {
    this.history.fail(episode, { kind: 'died', message: cause });
    this.log.push(`lost ${episode}`);
  }

  discard() {
    this.running = false;
    this.log.push('discarded');
  }

  /** Ends the runtime between calls. */
  end(blame: Blame, cause = 'ended') {
    this.running = false;
    for (const finish of [...this.open]) finish({ blame, cause });
  }

  /** Begins episodes without a call to the runtime. */
  begin(...episodes: string[]) {
    for (const episode of episodes) this.history.begun({ episode, seed: 1, member: 0, mode: 'train' }, null);
  }

  /** Plays one action of each episode. Returns `episode count`, or `episode: failure`. */
  async play(acts: Record<string, Act>): Promise<string[]> {
    const results = await this.supervisor.run<string>(Object.keys(acts), {
      send: async (episodes, alone, report) => {
        const refusal = await this.supervisor.ready();
        if (refusal) return refusal;
        this.log.push(`${alone ? 'alone' : 'sent'} ${episodes.join(' ')}`);
        const calls = episodes.map(episode => [episode, acts[episode]] as const);
        return this.perform(calls, episode => {
          this.history.acted(episode, [{ action: 1 }]);
          this.counts.set(episode, (this.counts.get(episode) ?? 0) + 1);
          report([[episode, `${episode} ${this.counts.get(episode)}`]]);
        });
      },
      fail: (episode, { cause }) => {
        this.history.fail(episode, { kind: 'died', message: cause });
        return `${episode}: ${cause}`;
      },
      onResults: found => this.log.push(...found.map(([, result]) => `= ${result}`)),
    });
    return Object.keys(acts).map(episode => results.get(episode)!);
  }

  private perform(
    calls: readonly (readonly [string, Act])[],
    done: (episode: string) => void,
  ): Promise<Ending<string> | undefined> {
    return new Promise(resolve => {
      const timers: NodeJS.Timeout[] = [];
      const finish = (ending?: Ending<string>) => {
        timers.forEach(clearTimeout);
        this.open.delete(finish);
        resolve(ending);
      };
      this.open.add(finish);
      let open = calls.length;
      for (const [episode, act] of calls)
        timers.push(
          setTimeout(() => {
            if ((act.ends ?? 0) > 0) {
              act.ends!--;
              return this.end(act.blame ?? 'unknown', `ended by ${episode}`);
            }
            done(episode);
            if (--open === 0) finish();
          }, act.ms ?? 1),
        );
    });
  }
}

// eslint-disable-next-line no-restricted-syntax -- simulated time: the timers are vitest's
const wait = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms));
/** Awaits a promise while simulated time passes. */
async function settled<T>(promise: Promise<T>): Promise<T> {
  const outcome = promise.then(
    value => ({ value }),
    (error: unknown) => ({ error }),
  );
  await vi.runAllTimersAsync();
  const found = await outcome;
  if ('error' in found) throw found.error;
  return found.value;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A runtime with these episodes that repeats calls as a thread or as a process does. */
function runtimeOf(kind: 'thread' | 'process', ...episodes: string[]): FakeRuntime {
  const runtime: FakeRuntime = new FakeRuntime(kind === 'process', () => runtime.log.push('separated'));
  runtime.begin(...episodes);
  return runtime;
}

test('a runtime is started once for all waiting calls', async () => {
  const runtime = runtimeOf('thread', 'a', 'b');
  expect(await settled(Promise.all([runtime.play({ a: {} }), runtime.play({ b: {} })]))).toEqual([['a 1'], ['b 1']]);
  expect(runtime.log.filter(line => line === 'started')).toEqual(['started']);
});

test('calls of one episode run in order, other calls overlap, and each result is reported when it is ready', async () => {
  const runtime = runtimeOf('thread', 'a', 'b');
  const slow = runtime.play({ a: { ms: 100 }, b: { ms: 5 } });
  const next = Promise.all([runtime.play({ b: {} }), runtime.play({ a: {} })]);
  expect(await settled(Promise.all([slow, next]))).toEqual([
    ['a 1', 'b 1'],
    [['b 2'], ['a 2']],
  ]);
  expect(runtime.log.filter(line => line.startsWith('='))).toEqual(['= b 1', '= b 2', '= a 1', '= a 2']);
});

test('after an ending between calls, all episodes except those about to be closed are replayed to their state', async () => {
  const runtime = runtimeOf('process', 'a', 'b');
  await settled(runtime.play({ a: {}, b: {} }));
  runtime.end('nobody');
  expect(await settled(runtime.supervisor.ready(new Set(['b'])))).toBeUndefined();
  expect(await settled(runtime.play({ a: {} }))).toEqual(['a 2']);
  expect(runtime.log).toContain('replays a');
});

describe('the culprit of an ending', () => {
  test('fails if the runtime names it, and the other calls are repeated together', async () => {
    const runtime = runtimeOf('thread', 'a', 'b', 'c');
    const played = runtime.play({ a: { ms: 1 }, b: { ms: 5, ends: 9, blame: { episode: 'b' } }, c: { ms: 9 } });
    expect(await settled(played)).toEqual(['a 1', 'b: ended by b', 'c 1']);
    expect(runtime.log).not.toContain('separated');
    expect(runtime.log.filter(line => line.startsWith('sent'))).toEqual(['sent a b c', 'sent c']);
    expect(runtime.log.filter(line => line.startsWith('replays'))).toEqual(['replays a b c', 'replays a c']);
  });

  test('in a thread is found by immediately repeating the calls one at a time', async () => {
    const runtime = runtimeOf('thread', 'a', 'b', 'c');
    expect(await settled(runtime.play({ a: { ms: 9 }, b: { ms: 5, ends: 9 }, c: { ms: 9 } }))).toEqual([
      'a 1',
      'b: ended by b',
      'c 1',
    ]);
    expect(runtime.log.filter(line => /^(sent|alone|separated)/.test(line))).toEqual([
      'sent a b c',
      'separated',
      'alone a',
      'alone b',
      'alone c',
    ]);
  });

  test('in a process is found after the calls were repeated together once', async () => {
    const runtime = runtimeOf('process', 'a', 'b');
    expect(await settled(runtime.play({ a: { ms: 9 }, b: { ms: 5, ends: 9 } }))).toEqual(['a 1', 'b: ended by b']);
    expect(runtime.log.filter(line => /^(sent|alone|separated)/.test(line))).toEqual([
      'sent a b',
      'sent a b',
      'separated',
      'alone a',
      'alone b',
    ]);
  });

  test('is not determined if the repetition succeeds', async () => {
    const runtime = runtimeOf('process', 'a', 'b');
    expect(await settled(runtime.play({ a: { ms: 9 }, b: { ms: 5, ends: 1 } }))).toEqual(['a 1', 'b 1']);
    expect(runtime.log).not.toContain('separated');
  });

  test('that belongs to another job fails in that job', async () => {
    const runtime = runtimeOf('thread', 'a', 'b');
    const mine = runtime.play({ a: { ms: 50, ends: 1, blame: 'other' } });
    expect(await settled(mine)).toEqual(['a 1']);
    expect(runtime.log.filter(line => line.startsWith('alone'))).toEqual([]);
  });

  test('is searched while no other call runs, and each call of other jobs has one result', async () => {
    const runtime = runtimeOf('process', 'a', 'b', 'c', 'd');
    const bad = runtime.play({ a: { ms: 20 }, b: { ms: 30, ends: 9 } });
    const other = runtime.play({ c: { ms: 100 } });
    const late = wait(45).then(() => runtime.play({ d: {} })); // while the calls of `bad` are repeated
    expect(await settled(Promise.all([bad, other, late]))).toEqual([['a 1', 'b: ended by b'], ['c 1'], ['d 1']]);
    const last = runtime.log.lastIndexOf('alone b');
    expect(runtime.log.findIndex(line => line === 'sent d')).toBeGreaterThan(last);
    expect(runtime.log.filter(line => line.startsWith('= '))).toHaveLength(4);
  });

  test('is not determined if no call ran: the third ending fails all pending calls', async () => {
    const runtime = runtimeOf('thread', 'a', 'b');
    const played = runtime.play({ a: { ms: 1 }, b: { ms: 5, ends: 9, blame: 'nobody' } });
    expect(await settled(played)).toEqual(['a 1', 'b: ended by b']);
    expect(runtime.log.filter(line => /^(sent|alone)/.test(line))).toEqual(['sent a b', 'alone b', 'alone b']);
  });
});

describe('rebuilding', () => {
  test('fails the episode whose replay ends the runtime, found by replaying one episode at a time', async () => {
    const runtime = runtimeOf('process', 'a', 'b', 'c');
    runtime.replayActs.set('b', { ends: 9 });
    expect(await settled(runtime.play({ a: {}, c: {} }))).toEqual(['a 1', 'c 1']);
    expect(runtime.log.filter(line => /^(replays|lost)/.test(line))).toEqual([
      'replays a b c',
      'replays a',
      'replays b',
      'lost b',
      'replays a',
      'replays c',
    ]);
  });

  test('immediately fails an episode that the runtime names', async () => {
    const runtime = runtimeOf('thread', 'a', 'b');
    runtime.replayActs.set('b', { ends: 9, blame: { episode: 'b' } });
    expect(await settled(runtime.play({ a: {} }))).toEqual(['a 1']);
    expect(runtime.log.filter(line => /^(replays|lost)/.test(line))).toEqual(['replays a b', 'lost b', 'replays a']);
  });

  test('fails with the reason if the runtime ends again without a running call', async () => {
    const runtime = runtimeOf('thread', 'a');
    runtime.replayActs.set('a', { ends: 9, blame: 'nobody' });
    expect(await settled(runtime.play({ a: {} }))).toEqual(['a: ended by a']);
    expect(runtime.log.filter(line => /^(replays|discarded)/.test(line))).toEqual([
      'replays a',
      'replays a',
      'discarded',
    ]);
  });

  test('fails with the reason if loading the code ends the runtime twice', async () => {
    const runtime = runtimeOf('process', 'a');
    runtime.loadActs = [{ ends: 1 }, { ends: 1 }];
    expect(await settled(runtime.play({ a: {} }))).toEqual(['a: ended by load']);
    runtime.begin('a');
    expect(await settled(runtime.play({ a: {} }))).toEqual(['a 1']);
  });

  test('that is refused fails the calls with the reason; a later call tries again', async () => {
    const runtime = runtimeOf('process', 'a', 'b');
    runtime.refusals = [{ blame: 'everybody', cause: 'no server' }];
    expect(await settled(runtime.play({ a: {}, b: {} }))).toEqual(['a: no server', 'b: no server']);
    runtime.begin('a');
    expect(await settled(runtime.play({ a: {} }))).toEqual(['a 1']);
  });

  test('that throws rejects the calls and discards the runtime', async () => {
    const runtime = runtimeOf('process', 'a');
    runtime.start = () => Promise.reject(new Error('stopped'));
    await expect(settled(runtime.play({ a: {} }))).rejects.toThrow('stopped');
    expect(runtime.log).toEqual(['discarded']);
  });
});

describe('a request without an episode', () => {
  test('is repeated once if the runtime ended', async () => {
    const { supervisor } = runtimeOf('process');
    const answers = [undefined, 'second'];
    expect(await settled(supervisor.twice(async () => answers.shift()))).toBe('second');
    expect(await settled(supervisor.twice(async () => answers.shift()))).toBeUndefined();
  });

  test('waits for exclusive jobs, which run one after another', async () => {
    const { supervisor } = runtimeOf('process');
    const order: string[] = [];
    const job = (name: string, ms: number) => () => wait(ms).then(() => order.push(name));
    const jobs = [supervisor.exclusively(job('first', 20)), supervisor.exclusively(job('second', 5))];
    expect(supervisor.exclusive).toBe(true);
    await settled(Promise.all([...jobs, supervisor.twice(job('third', 1))]));
    expect([order, supervisor.exclusive]).toEqual([['first', 'second', 'third'], false]);
  });
});
