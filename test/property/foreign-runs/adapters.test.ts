// Mutated files of every trainer: an adapter either reads them or refuses them with a sentence. Episodes and metrics
// that are written match their schemas, whatever the files contain.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { UserError } from '../../../extension/common/user-error';
import { adapters, recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import { attachOnce, samples } from '../../support/attached';

const trainers = [
  'verl/verl_examples',
  'verl/rollout_data',
  'verl/train.log',
  'verl/tensorboard_log',
  'ragen',
  'vagen/rollout_data',
  'vagen/rollouts',
  'prime-rl',
  'verifiers/outputs/frozenlake--qwen3-0.6b--null--d4e5f6',
  'verifiers/outputs/evals',
  'skyrl',
  'trl/trl-1.16',
  'trl/trl-1.14',
  'tinker-cookbook',
  'tinker-cookbook-arithmetic',
  'verifiers-lake-count',
  'openai-messages',
];

/** Values that replace a JSON value. */
const strange = [
  'null',
  '1e999',
  '-1',
  'NaN',
  '[]',
  '{}',
  '"<img src=x onerror=alert(1)>"',
  '"../../etc/passwd"',
  '1e15',
];

interface Change {
  file: number;
  at: number;
  kind: 'cut' | 'bytes' | 'value' | 'repeat' | 'swap';
  bytes: Uint8Array;
  value: string;
}

const change: fc.Arbitrary<Change> = fc.record({
  file: fc.nat(),
  at: fc.double({ min: 0, max: 1, noNaN: true }),
  kind: fc.constantFrom('cut', 'bytes', 'value', 'repeat', 'swap'),
  bytes: fc.uint8Array({ minLength: 1, maxLength: 12 }),
  value: fc.constantFrom(...strange),
});

/** Returns changed bytes of a file. */
function changed(bytes: Buffer, { at, kind, bytes: other, value }: Change): Buffer {
  const position = Math.floor(at * bytes.length);
  switch (kind) {
    case 'cut':
      return bytes.subarray(0, position);
    case 'bytes':
      return Buffer.concat([bytes.subarray(0, position), other, bytes.subarray(position + other.length)]);
    case 'repeat':
      return Buffer.concat([bytes, bytes.subarray(position)]);
    case 'swap':
      return Buffer.concat([bytes.subarray(position), bytes.subarray(0, position)]);
    case 'value': {
      const text = bytes.toString('latin1');
      const colon = text.indexOf(':', position);
      const end = colon < 0 ? -1 : text.slice(colon).search(/[,}\]]/);
      if (end < 0) return bytes;
      return Buffer.from(`${text.slice(0, colon + 1)}${value}${text.slice(colon + end)}`, 'latin1');
    }
  }
}

it('every adapter reads one of the mutated samples', async () => {
  const recognised = await Promise.all(
    trainers.map(async path => (await recognise(await SourceFolder.open(join(samples, path)))).adapter.id),
  );
  expect([...new Set(recognised)].sort()).toEqual(adapters.map(({ id }) => id).sort());
});

const files = (folder: string): string[] =>
  statSync(folder).isFile()
    ? [folder]
    : readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .sort()
        .map(name => join(folder, name))
        .filter(path => statSync(path).isFile());

it.each(trainers)('%s: mutated files are read or refused with a sentence', async trainer => {
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async changes => {
      const folder = mkdtempSync(join(tmpdir(), 'ragen-foreign-'));
      try {
        const copy = join(folder, 'run', trainer.split('/').at(-1)!);
        cpSync(join(samples, trainer), copy, { recursive: true });
        const all = files(copy);
        for (const each of changes) {
          const file = all[each.file % all.length];
          writeFileSync(file, changed(readFileSync(file), each));
        }
        // A file that changed a moment ago may still be written, and would be read later.
        for (const file of all) utimesSync(file, new Date(0), new Date(0));
        const { episodes } = await attachOnce(folder, copy); // parses every line by its schema
        for (const list of Object.values(episodes))
          for (const { id, reward } of list) expect([typeof id, Number.isFinite(reward)]).toEqual(['string', true]);
      } catch (error) {
        expect(error).toBeInstanceOf(UserError);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }),
    { numRuns: 25 },
  );
});
