// What a server can do, measured with models that are unloaded afterwards in every case.
import { afterEach, expect, test } from 'vitest';
import { inspectServer, type InspectionOptions } from '../../../../extension/models/tinker/server-inspection';
import { TinkerPeer, type PeerOptions } from '../../../support/tinker-peer';

let peer: TinkerPeer;
afterEach(() => peer.stop());
const start = async (options: Partial<PeerOptions> = {}): Promise<void> =>
  void (peer = await TinkerPeer.start({ vocabSize: 16, ...options }));
const phases: string[] = [];
const inspect = (more: Partial<InspectionOptions> = {}) =>
  inspectServer({
    ...{ url: peer.url, key: null, model: 'peer/bigram', rank: 8, critic: false, requestMs: 5000 },
    ...{ signal: new AbortController().signal, onPhase: phase => phases.push(phase), ...more },
  });

test('reductions, versions and the sampling rate are measured', async () => {
  await start({ tokens: 'mean', samples: 'sum' });
  const found = await inspect();
  expect(found).toMatchObject({
    model: 'peer/bigram',
    lora: { rank: 8, alpha: 32 },
    reduction: { samples: 'sum', tokens: 'mean' },
    keeps_versions: true,
    critic: null,
  });
  const { rows, tokens, seconds, tokens_per_s } = found.sampling;
  expect([rows, tokens]).toEqual([8, 8 * 32]);
  expect(tokens_per_s).toBeCloseTo(tokens / seconds);
  expect(peer.models.size).toBe(0);
});

test('a server whose published versions change with training is recognised', async () => {
  await start({ live: true });
  expect((await inspect()).keeps_versions).toBe(false);
});

test.each([
  [true, true],
  [false, false],
])('a critic is tried only if asked for (offered: %s)', async (offered, found) => {
  await start({ critic: offered });
  expect((await inspect({ critic: true })).critic?.offered).toBe(found);
  expect([peer.models.size, peer.critics.size]).toEqual([0, 0]);
});

test('a server that creates a policy in place of a critic has no critic', async () => {
  await start();
  let roles = 0;
  const create = peer.requests.length;
  peer.fault = (path, body) => {
    if (path === 'create_model' && body.model_role === 'critic') {
      roles++;
      delete body.model_role; // as a server that ignores unknown keys
    }
    return undefined;
  };
  expect((await inspect({ critic: true })).critic).toEqual({
    offered: false,
    reason: "loss_fn='ppo_critic' is only valid for critic models",
  });
  expect([roles, peer.models.size, create]).toEqual([1, 0, 0]);
});

test('a stopped inspection ends with its reason and unloads what it has created', async () => {
  await start();
  const stopped = new AbortController();
  const onPhase = (phase: string): void => {
    if (phase === 'measuring the sampling rate') stopped.abort(new Error('enough'));
  };
  await expect(inspect({ signal: stopped.signal, onPhase })).rejects.toThrow('enough');
  expect(peer.models.size).toBe(0);
});

test('a refusal of the server is passed on', async () => {
  await start({ models: 0 });
  await expect(inspect()).rejects.toThrow('refused create_model: Maximum number of LoRA adapters (0) reached');
});
