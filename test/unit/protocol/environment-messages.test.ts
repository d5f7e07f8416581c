// Valid and invalid messages of an environment process.
import { expect, it } from 'vitest';
import { isEnvironmentMessage } from '../../../extension/protocol/environment-link';

const state = { episode: 'e', observation: '', version: 'v' };
const call = { name: 'f', arguments: { x: [1] }, result: '1', error: false, ms: 3 };
const tool = { name: 'f', description: '', parameters: { type: 'object' } };
const loaded = {
  ...{ tag: 't', name: 'n', source: 's', version: 'v', bundle: '', files: [], config: {}, instruction: '', legend: {} },
  has_solver: false,
};
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
  { id: 1, method: 'step', episodes: [{ ...state, outcomes: [{ ...outcome, calls: [call] }] }] },
  { id: 1, method: 'load', environments: [{ ...loaded, tools: [tool] }] },
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
  ...[
    1,
    [1],
    [{ ...call, name: 1 }],
    [{ ...call, result: 1 }],
    [{ ...call, ms: NaN }],
    [{ ...call, arguments: [] }],
  ].map(calls => ({ id: 1, method: 'step', episodes: [{ ...state, outcomes: [{ ...outcome, calls }] }] })),
  ...[
    1,
    [1],
    [{ ...tool, name: 'x'.repeat(65) }],
    [{ ...tool, parameters: 'string' }],
    Array<unknown>(257).fill(tool),
  ].map(tools => ({ id: 1, method: 'load', environments: [{ ...loaded, tools }] })),
])('%j is an invalid message', message => {
  expect(isEnvironmentMessage(message)).toBe(false);
});
