// The changes of the Play page's state, and what keys ask for, without a page.
import { describe, expect, it } from 'vitest';
import type { PlayReply, PlaySession } from '../../../../extension/protocol/environment-tools';
import { reduce, type PlayEvent } from '../../../../webview/play/reducer';
import { requestOfKey, restartWith } from '../../../../webview/play/requests';
import { initialState, viewedStep, type PlayState } from '../../../../webview/play/state';

const step: PlaySession['steps'][number] = {
  ...{ action: 1, name: 'Left', observation: '', reward: 0 },
  ...{ terminated: false, truncated: false, info: {} },
};
const session = (steps: number, more: Partial<PlaySession> = {}): PlaySession => ({
  ...{ environment: 'maze', source: '/w/maze.ts', version: '01', files: [], config: {}, seed: 7, instruction: '' },
  ...{ legend: {}, actions: [{ id: 4, name: 'Up' }], has_solver: true, first: { observation: '' }, total: 0 },
  ...{ over: false, steps: Array.from({ length: steps }, () => step) },
  ...more,
});
const reply = (steps: number): PlayReply => ({ id: 1, session: session(steps) });
const after = (...events: PlayEvent[]): PlayState => events.reduce(reduce, initialState);
const typed: PlayEvent[] = [
  { type: 'connected', reply: reply(1) },
  { type: 'answer-typed', text: '1 + 1' },
  { type: 'asked' },
];
const act = { do: 'act', action: '1 + 1' } as const;

describe('the state', () => {
  it('clears an answer that was taken, and keeps one that was not', () => {
    expect(after(...typed, { type: 'replied', asked: act, reply: reply(2) }).answer).toBe('');
    expect(after(...typed, { type: 'replied', asked: act, reply: reply(1) }).answer).toBe('1 + 1');
  });

  it('accepts the next request after a refusal, whose message it shows beside the session', () => {
    const { busy, reply: shown } = after(...typed, { type: 'refused', message: 'the process ended' });
    expect([busy, shown?.error?.message, shown?.session?.seed]).toEqual([false, 'the process ended', 7]);
  });

  it('views the newest step again after a reply, or when the last one is chosen', () => {
    const looking = after({ type: 'connected', reply: reply(2) }, { type: 'view', step: 1 });
    expect(viewedStep(looking, session(2))).toBe(1);
    expect(reduce(looking, { type: 'view', step: 2 }).looked).toBeNull();
    expect(reduce(looking, { type: 'replied', asked: { do: 'hint' }, reply: reply(2) }).looked).toBeNull();
  });

  it('knows saved code until it is reloaded', () => {
    const stale = after({ type: 'connected', reply: reply(0) }, { type: 'stale', file: 'maze.ts' });
    expect(reduce(stale, { type: 'replied', asked: { do: 'hint' }, reply: reply(0) }).stale).toBe('maze.ts');
    expect(reduce(stale, { type: 'replied', asked: { do: 'reload' }, reply: reply(0) }).stale).toBeNull();
  });
});

describe('keys', () => {
  it('ask for what is possible, for nothing where it is not, and are unknown otherwise', () => {
    expect(requestOfKey('ArrowUp', session(0))).toEqual({ do: 'act', action: 4 });
    expect(requestOfKey('ArrowUp', session(1, { over: true }))).toBeNull();
    expect([requestOfKey('u', session(0)), requestOfKey('u', session(1))]).toEqual([null, { do: 'undo' }]);
    expect(requestOfKey('h', session(0, { has_solver: false }))).toBeNull();
    expect(requestOfKey('toString', session(0))).toBeUndefined();
  });

  it('start an episode with a typed seed, if it is one', () => {
    expect([restartWith(' 12 '), restartWith('1e3'), restartWith('')]).toEqual([
      { do: 'restart', seed: 12 },
      null,
      null,
    ]);
  });
});
