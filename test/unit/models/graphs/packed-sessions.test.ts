// The number of onnxruntime arenas of a network: sessions are closed before others are created.
import { afterEach, expect, it, vi } from 'vitest';
import { Graph } from '../../../../extension/engine/graph/graph';
import { Session } from '../../../../extension/engine/session/session';
import { PackedSessions, arenasKept, passBytes } from '../../../../extension/models/graphs/packed-sessions';
import type { PassSize } from '../../../../extension/models/graphs/packed-sessions';
import type { Network } from '../../../../extension/models/graphs/policy-graphs';
import { partial } from '../../../support/partial';

const config = { heads: 2, hiddenSize: 8, layers: 3 };
const network = partial<Network>({ config });
const build = (): Graph => {
  const g = new Graph('pass');
  g.output('y', g.emit('Neg', [g.input('x', 'float32', ['n'])], 'float32', ['n']));
  return g;
};
const small: PassSize = { tokens: 64, scores: 64 * 64 };
/** One pass of this size uses the whole limit. */
const large: PassSize = { tokens: 0, scores: arenasKept / (4 * config.layers * config.heads) };

afterEach(() => void vi.restoreAllMocks());

function opened() {
  const closed = vi.spyOn(Session.prototype, 'release');
  const sessions = new PackedSessions(network, { threads: 1 }, false);
  const get = (kind: string, shared: boolean, chunks: number, size: PassSize): Promise<Session> =>
    sessions.get(kind, { shared, chunks }, build, { ...size, kept: true });
  return { get, closed, sessions };
}

it('keeps the sessions of small passes open, and reuses them', async () => {
  const { get, closed, sessions } = opened();
  const first = await get('update', false, 1, small);
  await get('update', true, 1, small);
  await get('score', true, 1, small);
  expect(await get('update', false, 1, small)).toBe(first);
  expect(closed).not.toHaveBeenCalled();
  await sessions.release();
  expect(closed).toHaveBeenCalledTimes(3);
});

it('closes a session before it creates one for another number of head chunks', async () => {
  const { get, closed, sessions } = opened();
  const first = await get('update', false, 1, small);
  await get('update', true, 1, small);
  expect(await get('update', false, 2, small)).not.toBe(first);
  expect(closed).toHaveBeenCalledTimes(1);
  await sessions.release();
});

it('keeps one session when passes are large, and remembers their size', async () => {
  const { get, closed, sessions } = opened();
  await get('update', false, 1, small);
  const other = await get('update', true, 1, large);
  expect(closed).toHaveBeenCalledTimes(1);
  expect(await get('update', true, 1, small)).toBe(other);
  await get('update', false, 1, small);
  expect(closed).toHaveBeenCalledTimes(2);
  await sessions.release();
});

it('counts all layers of a pass with backward, or one layer without', () => {
  expect(passBytes(config, large, true)).toBe(arenasKept);
  expect(passBytes(config, large, false)).toBe(arenasKept / config.layers);
});
