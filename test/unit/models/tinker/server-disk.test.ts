// What a run deletes from a server's disk: old published versions, copies for downloads and states that no checkpoint
// needs; and a server that refuses to delete.
import { afterEach, expect, test } from 'vitest';
import { budget, endAll, load, loss, plainStep, samplesOf, sampling, started } from '../../../support/served-engine';
import type { TinkerPeer } from '../../../support/tinker-peer';

afterEach(endAll);

const versions = (peer: TinkerPeer) => [...peer.saved.keys()].filter(path => path.includes('/sampler_weights/'));

test('old versions are deleted, the newest ones stay, and at the end none stays', async () => {
  const { peer, engine } = await started({ deletes: true }, { keptVersions: 2 });
  await engine.load(load);
  for (const path of versions(peer)) peer.saved.delete(path); // the probe's
  for (let step = 0; step < 5; step++) {
    await engine.generate([{ row: `${step}`, append: [1], seed: step }], sampling);
    await engine.update(samplesOf('token-mean'), budget, loss(), plainStep);
  }
  await expect.poll(() => versions(peer).length).toBe(2);
  expect(peer.requests.filter(({ path }) => path.startsWith('DELETE')).length).toBe(3);
  await engine.generate([{ row: 'last', append: [1], seed: 9 }], sampling);
  await engine.stop();
  expect(versions(peer)).toEqual([]);
});

test('the copy for a download is deleted, and a saved state only when it is discarded', async () => {
  const { peer, engine } = await started({ deletes: true });
  await engine.load(load);
  const before = peer.saved.size;
  await engine.parameters();
  expect(peer.saved.size).toBe(before);
  const { server } = await engine.state();
  const kept = await engine.state();
  await engine.discard([server.path]);
  expect(peer.saved.has(server.path)).toBe(false);
  expect(peer.saved.has(kept.server.path)).toBe(true);
});

test('a server that does not delete is reported once and asked no more', async () => {
  const warnings: string[] = [];
  const { peer, engine } = await started({}, { keptVersions: 1, onWarning: sentence => void warnings.push(sentence) });
  await engine.load(load);
  await engine.parameters();
  await engine.parameters();
  const { server } = await engine.state();
  await engine.discard([server.path, server.path]);
  expect(peer.saved.has(server.path)).toBe(true);
  expect(warnings).toEqual([`${peer.url} does not delete old weights (Not Found), so they stay on its disk`]);
  expect(peer.requests.filter(({ path }) => path.startsWith('DELETE')).length).toBe(1);
});

test('a server that has gone away delays nothing', async () => {
  const { peer, engine, outages } = await started({ deletes: true });
  await engine.load(load);
  const { server } = await engine.state();
  peer.fault = () => 'cut before';
  await engine.discard([server.path]);
  expect(outages).toEqual([]);
});

test.each(['cut before', { status: 503, body: {} }] as const)(
  'a deletion that fails for a moment ends no others: %o',
  async fault => {
    const warnings: string[] = [];
    const { peer, engine } = await started({ deletes: true }, { onWarning: sentence => void warnings.push(sentence) });
    await engine.load(load);
    const states = [await engine.state(), await engine.state()].map(({ server }) => server.path);
    let left = 1;
    peer.fault = path => (path.startsWith('DELETE') && left-- > 0 ? fault : undefined);
    await engine.discard(states);
    expect(states.map(path => peer.saved.has(path))).toEqual([true, false]);
    expect(warnings).toEqual([]);
  },
);
