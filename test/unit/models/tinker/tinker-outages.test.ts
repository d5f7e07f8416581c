// The engine over the network on an unreliable network and while the run is stopped, against a peer that cuts, delays,
// repeats, doubles, withholds and garbles answers.
import { afterEach, describe, expect, test } from 'vitest';
import { RunStopped } from '../../../../extension/engine/run-stopped';
import type { TinkerEngine } from '../../../../extension/models/tinker/tinker-engine';
import { WeightsUncertain } from '../../../../extension/engine/weights-uncertain';
import { samplingSlots } from '../../../../extension/models/tinker/request-slots';
import {
  actorOf,
  budget,
  endAll,
  endPeer,
  faulty,
  load,
  loss,
  plainStep,
  samplesOf,
  sampling,
  started,
} from '../../../support/served-engine';

afterEach(endAll);

describe('an unreliable network', () => {
  test.each([
    ['asample', 'cut before'],
    ['asample', 'cut after'],
    ['asample', 'garbled'],
    ['retrieve_future', 'cut after'],
    ['retrieve_future', { status: 502, body: {} }],
    ['retrieve_future', { status: 408, body: { detail: 'Timeout waiting for result' } }],
    ['retrieve_future', { status: 200, body: { type: 'try_again' } }],
    ['retrieve_future', { status: 425, body: { detail: 'Too early' } }],
    ['retrieve_future', { status: 429, body: { detail: 'Too many requests' } }],
    ['retrieve_future', { status: 500, body: 'Internal Server Error' }],
    ['retrieve_future', 'garbled'],
    ['retrieve_future', 'doubled'],
    ['asample', 'doubled'],
    ['asample', 'twice'],
    ['forward', { status: 503, body: {} }],
  ] as const)('a repeatable request survives: %s %o', async (path, fault) => {
    const { peer, engine } = await started();
    await engine.load(load);
    const whole = await engine.generate([{ row: 'a', append: [1], seed: 4 }], sampling);
    faulty(peer, path, fault, 3);
    const rows = await engine.generate([{ row: 'b', append: [1], seed: 4 }], sampling);
    expect(rows[0].ids).toEqual(whole[0].ids);
    const [sample] = samplesOf('token-mean');
    await expect(engine.score('actor', [sample])).resolves.toMatchObject({ logprobs: [expect.any(Float32Array)] });
  });

  test.each(['forward_backward', 'optim_step'])(
    'a lost answer to %s makes the weights uncertain; the request is not sent again',
    async path => {
      for (const fault of ['cut before', 'cut after', 'garbled', { status: 500, body: {} }] as const) {
        const { peer, engine } = await started();
        await engine.load(load);
        const sent = () => peer.requests.filter(request => request.path === path).length;
        const before = sent();
        faulty(peer, path, fault);
        await expect(engine.update(samplesOf('token-mean'), budget, loss(), plainStep)).rejects.toThrow(
          WeightsUncertain,
        );
        expect(sent()).toBe(before + 1);
      }
    },
  );

  test('a lost answer to the loading of a state makes the weights uncertain; the state is not loaded twice', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    const state = await engine.state();
    faulty(peer, 'load_weights', 'cut after');
    await expect(engine.restore(state)).rejects.toThrow(WeightsUncertain);
    expect(peer.sent('load_weights')).toBe(1);
  });

  test('a lost answer to an unloading is no failure: the server no longer has the model', async () => {
    const { peer, engine } = await started();
    faulty(peer, 'unload_model', 'cut after');
    await engine.load(load);
    expect([peer.sent('unload_model'), peer.models.size]).toEqual([2, 1]);
  });

  test('a busy server is asked again also for what changes weights, since it has not executed it', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    faulty(peer, 'optim_step', { status: 429, body: {} }, 2);
    await expect(engine.update(samplesOf('token-mean'), budget, loss(), plainStep)).resolves.toMatchObject({
      skipped: 0,
    });
  });

  test('a request without an answer is sent again after its time limit', async () => {
    const { peer, engine } = await started({}, { timeoutMs: 200, outageMs: 30_000 });
    await engine.load(load);
    faulty(peer, 'forward', 'silent');
    const before = peer.sent('forward');
    const [sample] = samplesOf('token-mean');
    await expect(engine.score('actor', [sample])).resolves.toMatchObject({ logprobs: [expect.any(Float32Array)] });
    expect(peer.sent('forward')).toBe(before + 2);
  });

  test('a server that has forgotten a request makes the weights uncertain', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    faulty(peer, 'retrieve_future', { status: 404, body: { detail: 'Future not found' } });
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow(WeightsUncertain);
  });

  test('a server that has forgotten the model makes the weights uncertain', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    faulty(peer, 'forward', { status: 404, body: { detail: 'Model not found' } });
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow(WeightsUncertain);
  });

  test.each(['garbled', 'cut after', 'doubled', { status: 425, body: {} }, { status: 502, body: {} }] as const)(
    'the result of a step is fetched again: %o',
    async fault => {
      const { peer, engine } = await started();
      await engine.load(load);
      faulty(peer, 'retrieve_future', fault, 2);
      const before = peer.sent('forward_backward');
      await engine.update(samplesOf('token-mean'), budget, loss(), plainStep);
      expect(peer.sent('forward_backward')).toBe(before + 1);
    },
  );

  test('a failure that the server reports is final, with its reason', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    faulty(peer, 'retrieve_future', { status: 500, body: { detail: 'Unknown error' } }, 1);
    const polls = peer.sent('retrieve_future');
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow('refused forward: Unknown error');
    expect(peer.sent('retrieve_future')).toBe(polls + 1);
    faulty(peer, 'save_weights', { status: 500, body: { detail: 'Checkpoint creation failed: disk full' } });
    await expect(engine.state()).rejects.toThrow('Checkpoint creation failed: disk full');
  });

  test('a result that the server can never send is a failure, not an outage', async () => {
    const { peer, engine } = await started({}, { outageMs: 1e9 });
    await engine.load(load);
    faulty(peer, 'retrieve_future', { status: 500, body: 'Internal Server Error' }, Infinity);
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow(
      'may contain a number that is not finite',
    );
  });

  test('a result that comes after scattered crashes of the server is used', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    let polls = 0;
    const statuses = [500, 500, 500, 500, 425, 500, 500, 500, 500];
    peer.fault = path => {
      const status = path === 'retrieve_future' ? statuses[polls++] : undefined;
      return status === undefined ? undefined : { status, body: 'Internal Server Error' };
    };
    const { logprobs } = await engine.score('actor', [samplesOf('token-mean')[0]]);
    expect(logprobs).toHaveLength(1);
    expect(polls).toBe(statuses.length + 1);
  });

  test('every request is reported from its begin to its result', async () => {
    const running = new Map<string, number>();
    const begun: string[] = [];
    const count = (path: string, change: number) => running.set(path, (running.get(path) ?? 0) + change);
    const onRequest = (path: string) => {
      begun.push(path);
      count(path, 1);
      return () => void count(path, -1);
    };
    const { peer, engine } = await started({}, { onRequest });
    await engine.load(load);
    begun.splice(0);
    let release = (): void => undefined;
    faulty(peer, 'retrieve_future', { after: new Promise<void>(resolve => (release = resolve)) }, 2);
    const samples = samplesOf('token-mean');
    const update = engine.trainSupervised(samples, budget, plainStep);
    await expect.poll(() => running.get('forward')).toBe(1);
    release();
    await update;
    expect(begun).toEqual(['forward', 'forward_backward', 'optim_step']);
    expect([...running.values()].every(open => open === 0)).toBe(true);
  });

  test.each(['cut before', 'cut after', { status: 425, body: {} }, { status: 503, body: {} }] as const)(
    'a download survives: %o',
    async fault => {
      const { peer, engine } = await started();
      await engine.load(load);
      const expected = await engine.parameters();
      for (const kind of ['archive', 'download']) {
        let left = 3;
        peer.fault = path => (path.endsWith(`/${kind}`) && left-- > 0 ? fault : undefined);
        expect(await engine.parameters()).toEqual(expected);
      }
    },
  );

  test('a name is not used again when the answer to a save is lost', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    faulty(peer, 'save_weights', 'cut after', 2);
    const { server } = await engine.state();
    expect(peer.sent('save_weights')).toBe(3);
    expect(peer.saved.has(server.path)).toBe(true);
  });

  test('a server that remembers requests executes a repeated one once', async () => {
    const { peer, engine } = await started({ remembers: true });
    await engine.load(load);
    const before = actorOf(peer).copy();
    peer.fault = path => (path === 'optim_step' || path === 'forward_backward' ? 'twice' : undefined);
    await engine.update(samplesOf('token-mean'), budget, loss(), plainStep);
    const { peer: other, engine: alone } = await started();
    await alone.load(load);
    expect(actorOf(other).table).toEqual(before.table);
    await alone.update(samplesOf('token-mean'), budget, loss(), plainStep);
    expect(actorOf(peer).table).toEqual(actorOf(other).table);
  });

  test('a server that leaves everything unanswered is in an outage, and the run ends with its limit', async () => {
    const { peer, engine, outages } = await started({}, { heartbeatMs: 20, outageMs: 200, timeoutMs: 1e6 });
    await engine.load(load);
    let polled = false;
    peer.fault = path => ((polled ||= path === 'retrieve_future') ? 'silent' : undefined);
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow(
      /does not answer any request \(no answer in time\): start the server/,
    );
    expect(outages).toEqual(['no answer to any request']);
  });

  test('the outage of a silent server ends with the first heartbeat that it answers', async () => {
    const { peer, engine, outages } = await started({}, { heartbeatMs: 20, outageMs: 1e6 });
    await engine.load(load);
    peer.fault = path => (path === 'session_heartbeat' ? 'silent' : undefined);
    await expect.poll(() => outages).toEqual(['no answer to any request']);
    peer.fault = () => undefined;
    await expect.poll(() => outages).toEqual(['no answer to any request', null]);
  });

  test('heartbeats keep the session while polls hold every connection', async () => {
    const { peer, engine } = await started({}, { heartbeatMs: 20, connections: 1 });
    await engine.load(load);
    let release = (): void => undefined;
    const held = new Promise<void>(resolve => (release = resolve));
    faulty(peer, 'retrieve_future', { after: held });
    const scores = engine.score('actor', [samplesOf('token-mean')[0]]);
    const before = peer.sent('session_heartbeat');
    await expect.poll(() => peer.sent('session_heartbeat')).toBeGreaterThan(before + 3);
    expect(peer.requests.at(-1)!.body).toEqual({ session_id: 'session_1' });
    release();
    await expect(scores).resolves.toMatchObject({ logprobs: [expect.any(Float32Array)] });
  });

  test('rows in any number use no more HTTP requests than allowed, and give the same tokens', async () => {
    const rows = (count: number) => Array.from({ length: count }, (_, i) => ({ row: `${i}`, append: [1], seed: i }));
    const { peer, engine } = await started({}, { connections: 12 });
    await engine.load(load);
    let release = (): void => undefined;
    const full = new Promise<void>(resolve => (release = resolve));
    peer.fault = path => {
      if (peer.mostOpen >= samplingSlots(12)) release(); // all slots are in use: no earlier answer
      return path === 'asample' ? { after: full } : undefined;
    };
    const calls = [rows(150), rows(300).slice(150)].map(part => engine.generate(part, sampling));
    const found = (await Promise.all(calls)).flat();
    expect(peer.mostOpen).toBeLessThanOrEqual(12);
    const { engine: wide } = await started({}, { connections: 300 });
    await wide.load(load);
    expect((await wide.generate(rows(300), sampling)).map(({ ids }) => ids)).toEqual(found.map(({ ids }) => ids));
  });

  test('an outage is reported with its reason and its end', async () => {
    const { peer, engine, outages } = await started();
    await engine.load(load);
    faulty(peer, 'forward', 'cut before', 3);
    await engine.score('actor', [samplesOf('token-mean')[0]]);
    expect(outages).toEqual([expect.stringMatching(/\w/), null]);
  });

  test('an outage that lasts ends with the address and the remedy', async () => {
    const { peer, engine } = await started({}, { outageMs: 50 });
    await engine.load(load);
    await endPeer(peer);
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow(
      /does not answer forward \(ECONNREFUSED\): start the server or correct workbench.engine_url/,
    );
  });
});

describe('a stop', () => {
  test('ends sampling at once', async () => {
    const { engine } = await started({ latencyMs: 300 });
    await engine.load(load);
    const rows = engine.generate([{ row: 'a', append: [1], seed: 4 }], sampling);
    engine.interrupt();
    await expect(rows).rejects.toThrow(RunStopped);
    await expect(engine.score('actor', samplesOf('token-mean'))).rejects.toThrow(RunStopped);
  });

  test('at the end unloads the models', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    await engine.score('reference', samplesOf('token-mean'));
    expect(peer.models.size).toBe(2);
    await engine.stop();
    expect(peer.models.size).toBe(0);
  });

  test('at the end unloads the other models if the server has lost one', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    await engine.score('reference', samplesOf('token-mean'));
    faulty(peer, 'unload_model', { status: 404, body: { detail: 'Model not found' } });
    await engine.stop();
    expect(peer.sent('unload_model')).toBe(3); // with that of the probe
    expect(peer.models.size).toBe(1);
  });

  test('lets an update finish whose gradient was sent', async () => {
    const { peer, engine } = await started();
    await engine.load(load);
    await engine.remember();
    expect(await engine.rollBack()).toBe(true);
    peer.fault = path => {
      if (path === 'forward_backward') engine.interrupt();
      return undefined;
    };
    await expect(engine.update(samplesOf('token-mean'), budget, loss(), plainStep)).resolves.toMatchObject({ lr: 1e6 });
    expect(await engine.rollBack()).toBe(false);
  });

  const calls = {
    state: engine => engine.state(),
    parameters: engine => engine.parameters(),
    update: engine => engine.update(samplesOf('token-mean'), budget, loss(), plainStep),
    'supervised step': engine => engine.trainSupervised(samplesOf('token-mean'), budget, plainStep),
  } satisfies Record<string, (engine: TinkerEngine) => Promise<unknown>>;

  test.each(Object.keys(calls) as (keyof typeof calls)[])('ends the waiting during an outage: %s', async name => {
    const { peer, engine, outages } = await started({}, { outageMs: 1e9 });
    await engine.load(load);
    peer.fault = path => (path === 'session_heartbeat' ? undefined : 'cut before');
    if (name === 'update' || name === 'supervised step')
      peer.fault = path => (path === 'retrieve_future' ? { status: 502, body: {} } : undefined);
    await engine.remember();
    const call = calls[name](engine);
    call.catch(() => undefined);
    await expect.poll(() => outages.length).toBeGreaterThan(0);
    engine.interrupt();
    await expect(call).rejects.toThrow(RunStopped);
  });

  test('leaves the weights of an interrupted step uncertain', async () => {
    const { peer, engine, outages } = await started({}, { outageMs: 1e9 });
    await engine.load(load);
    await engine.remember();
    const samples = samplesOf('token-mean');
    await engine.score('actor', samples);
    peer.fault = path => (path === 'retrieve_future' ? { status: 502, body: {} } : undefined);
    const steps = peer.sent('optim_step');
    const step = engine.update(samples, budget, loss(), plainStep);
    step.catch(() => undefined);
    // The step is sent while the gradient's result is fetched; its acceptance ends the outage for a moment.
    await expect.poll(() => peer.sent('optim_step') > steps && typeof outages.at(-1)).toBe('string');
    engine.interrupt();
    await expect(step).rejects.toThrow(RunStopped);
    expect(await engine.rollBack()).toBe(false);
  });

  test.each(['forward_backward', 'retrieve_future'])(
    'ends the waiting for a server that has become silent: %s',
    async path => {
      const { peer, engine, outages } = await started({}, { outageMs: 1e9, timeoutMs: 1e6 });
      await engine.load(load);
      const samples = samplesOf('token-mean');
      await engine.score('actor', samples);
      let silent = false;
      peer.fault = asked => ((silent ||= asked === path) ? 'silent' : undefined);
      const step = engine.update(samples, budget, loss(), plainStep);
      step.catch(() => undefined);
      await expect.poll(() => silent).toBe(true);
      engine.interrupt();
      await expect(step).rejects.toThrow(RunStopped);
      expect(outages).toEqual([]);
    },
  );

  test('waits for a step that hangs on a server that answers only for a limited time', async () => {
    const { peer, engine } = await started({}, { heartbeatMs: 10, stopMs: 100 });
    await engine.load(load);
    peer.fault = path => (path === 'retrieve_future' ? 'silent' : undefined);
    const step = engine.trainSupervised(samplesOf('token-mean'), budget, plainStep);
    step.catch(() => undefined);
    await expect.poll(() => peer.requests.at(-1)!.path).toBe('session_heartbeat');
    engine.interrupt();
    await expect(step).rejects.toThrow(RunStopped);
  });

  test('lets a checkpoint be written on a server that answers', async () => {
    const { engine } = await started();
    await engine.load(load);
    engine.interrupt();
    await expect(engine.state()).resolves.toMatchObject({ server: { base: 'peer/bigram' } });
    await expect(engine.parameters()).resolves.toHaveLength(1);
  });
});
