// Valid and invalid messages of an environment process.
import { expect, it } from 'vitest';
import { isEnvironmentMessage } from '../../../extension/protocol/environment-link';

const state = { episode: 'e', observation: '', version: 'v' };
const outcome = { action: 1, reward: 0, terminated: false, truncated: false, info: {} };

it.each([
  { method: 'log', tag: '', stream: 'stderr', text: 'x' },
  { id: 1, method: 'use' },
  { id: 1, method: 'load', environments: [], error: { kind: 'build', message: 'x' } },
  {
    id: 1,
    method: 'reset',
    episodes: [state, { ...state, episode: 'f', error: { kind: 'died', message: 'x' } }],
    more: true,
  },
  { id: 1, method: 'step', episodes: [{ ...state, info: {}, images: [], outcomes: [outcome] }] },
  { id: 1, method: 'solve', solutions: [{ episode: 'e' }] },
])('%j is a valid message', message => {
  expect(isEnvironmentMessage(message)).toBe(true);
});

it.each([
  ...[null, undefined, true, 5, 'reset', [], {}, { id: 1 }, { method: 'reset' }, { id: '1', method: 'use' }],
  ...[
    { id: 1, method: 'toString' },
    { id: 1, method: '__proto__' },
    { method: 'log', tag: 't', text: 5, stream: 'stdout' },
  ],
  ...[
    { id: 1, method: 'reset' },
    { id: 1, method: 'reset', episodes: [null] },
    { id: 1, method: 'reset', episodes: {} },
  ],
  ...[
    { id: 1, method: 'step', episodes: [state] },
    { id: 1, method: 'step', episodes: [{ ...state, outcomes: [1] }] },
  ],
  ...[
    { id: 1, method: 'reset', episodes: [state, state] },
    { id: 1, method: 'step', episodes: [{ ...state, outcomes: [{ ...outcome, reward: NaN }] }] },
  ],
  ...[
    { id: 1, method: 'reset', episodes: [{ ...state, error: 'x' }] },
    { id: 1, method: 'load', environments: [], error: 1 },
  ],
])('%j is an invalid message', message => {
  expect(isEnvironmentMessage(message)).toBe(false);
});
