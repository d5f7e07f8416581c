// The turns in a context window, and the shortening of a chat, by default and as in RAGEN.
import { describe, expect, it } from 'vitest';
import {
  chatMessages,
  historyStart,
  windowTurns,
  withoutOldestMessages,
  withoutOldestTurn,
  type WindowMessage,
} from '../../../../extension/trainer/rollout/context-window';

/**
 * Formats messages: `u1` is the user message of turn index 1, `r1` the user message that starts with a reward, `a1` the
 * answer.
 */
const show = (messages: readonly WindowMessage[] | null) =>
  messages?.map(m => (m.role === 'assistant' ? 'a' : m.reward ? 'r' : 'u') + m.turn).join(' ') ?? null;

const steps = (shorten: typeof withoutOldestTurn, last: number) => {
  const shown: string[] = [];
  for (let messages: WindowMessage[] | null = chatMessages(0, last); messages; messages = shorten(messages))
    shown.push(show(messages)!);
  return shown;
};

describe('windows', () => {
  it('begin at RAGEN’s history_start', () => {
    expect([0, 1, 2, 3, 4].map(turn => historyStart(turn, 3))).toEqual([0, 0, 0, 1, 2]);
    expect([0, 1, 2].map(turn => historyStart(turn, 1))).toEqual([0, 1, 2]);
    expect(historyStart(7, Infinity)).toBe(0);
  });

  it('are unlimited when max_context_window is null or negative', () => {
    expect([null, undefined, -1, 5].map(windowTurns)).toEqual([Infinity, Infinity, Infinity, 5]);
  });
});

describe('shortening', () => {
  it('drops turns but keeps the states after them, until only the current turn is left', () => {
    expect(steps(withoutOldestTurn, 3)).toEqual(['u0 a0 r1 a1 r2 a2 r3', 'u1 a1 r2 a2 r3', 'u2 a2 r3', 'u3']);
  });

  it('as in RAGEN also drops the state after a turn, then a single answer, and finally the current turn', () => {
    expect(steps(withoutOldestMessages, 3)).toEqual(['u0 a0 r1 a1 r2 a2 r3', 'a1 r2 a2 r3', 'r2 a2 r3', '']);
    expect(steps(withoutOldestMessages, 2)).toEqual(['u0 a0 r1 a1 r2', 'a1 r2']);
    expect(steps(withoutOldestMessages, 1)).toEqual(['u0 a0 r1', '']);
  });
});
