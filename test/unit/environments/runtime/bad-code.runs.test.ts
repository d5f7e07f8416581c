// Faulty environment code at each place where the environment process calls it. The complete table, including code that
// exhausts memory, `render`, and faults within a training run, is run by `npm run torture -- environment-code`.
// failures.test.ts covers thrown and returned values.
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { tryEnvironmentCode } from '../../../torture/environment-code';
import { buildEntry } from '../../../support/bundles';

test('faulty code ends only its own episode, or only its own code change is refused', async () => {
  const entry = await buildEntry();
  try {
    const tried = await tryEnvironmentCode({
      entry,
      behaviours: [
        ...[
          'never returns',
          'returns a trap',
          'exits',
          'kills its process',
          'floods standard output',
          'starts a daemon',
          'forgets an await',
          'throws in a later call',
          'replaces built-in functions',
          'closes the port',
        ],
      ],
      places: ['load', 'create', 'reset', 'step'],
    });
    const more = await tryEnvironmentCode({
      entry,
      behaviours: ['fills memory outside the heap', 'has a child that floods', 'returns an info without end'],
      places: ['step'],
    });
    expect([...tried, ...more].filter(({ broken }) => broken !== undefined)).toEqual([]);
    expect([tried.length, more.length]).toEqual([40, 3]);
  } finally {
    rmSync(dirname(entry), { recursive: true, force: true });
  }
}, 120_000);
