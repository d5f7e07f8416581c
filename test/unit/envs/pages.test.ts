// docs/environments: each page's table has the keys of the configuration, and the episode it shows is played by a test
// (test/golden/envs/transcripts): its lines occur there in the same order. `…` omits text, and the end of an action's
// line may be omitted too.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { z } from 'zod';
import type { EnvironmentDefinition } from '../../../envs/api/environment';

const root = join(__dirname, '../../..');
const pages = join(root, 'docs/environments');
const transcripts = join(root, 'test/golden/envs/transcripts');
const registry = JSON.parse(readFileSync(join(root, 'envs/registry.json'), 'utf8')) as Record<string, string>;

/** Environments whose episodes come from a server have no transcript. */
const elsewhere = ['alfworld', 'remote'];
/** Environments whose episodes come from the user's program or server have no transcript either. */
const withoutEpisode = ['program', 'verifiers'];
const types = Object.keys(registry).filter(type => !elsewhere.includes(type));
const page = (type: string) => join(pages, `${type.replaceAll('_', '-')}.md`);

test('each environment has a page', () => {
  expect(types.map(type => page(type)).filter(file => !readdirSync(pages).some(name => file.endsWith(name)))).toEqual(
    [],
  );
});

/** Keys of an object schema, also behind a transform. */
function keysOf(schema: z.ZodType): string[] {
  const def = schema.def as { type: string; in?: z.ZodType; shape?: object };
  return def.type === 'pipe' && def.in ? keysOf(def.in) : Object.keys(def.shape ?? {});
}

/** The indented blocks below "An episode". */
function shownBlocks(text: string): string[][] {
  const after = text.slice(text.indexOf('\n## An episode\n'));
  return [...after.matchAll(/(?:^ {4}.*\n|^\n(?= {4}))+/gm)].map(([block]) =>
    block.split('\n').flatMap(line => (line.trim() === '' ? [] : [line.slice(4)])),
  );
}

/** Whether a page's line matches a transcript's line. */
function says(shown: string, line: string): boolean {
  const pieces = shown.split('…').map(piece => piece.trim());
  if (/: reward \S+(, terminated|, truncated)?$/.test(shown)) pieces.push(''); // the info may be omitted
  const pattern = pieces.map(piece => piece.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('.*');
  return new RegExp(`^\\s*${pattern}\\s*$`).test(line);
}

/** The first line of the block that the transcript does not contain in order, or undefined. */
function missing(block: readonly string[], transcript: readonly string[]): string | undefined {
  let at = 0;
  for (const shown of block) {
    if (shown.trim() === '…') continue;
    while (at < transcript.length && !says(shown, transcript[at])) at++;
    if (at++ >= transcript.length) return shown;
  }
  return undefined;
}

describe.each(types)('%s', type => {
  const text = readFileSync(page(type), 'utf8');

  test("the table has the configuration's keys", async () => {
    const { default: definition } = (await import(join(root, 'envs', registry[type]))) as {
      default: EnvironmentDefinition<z.ZodType>;
    };
    const table = text.slice(
      text.indexOf('| `env_config` key'),
      text.indexOf('\n\n', text.indexOf('| `env_config` key')),
    );
    const named = table
      .split('\n')
      .slice(2)
      .flatMap(row => [...row.split('|')[1].matchAll(/`([^`]+)`/g)].map(([, key]) => key));
    expect(named.toSorted()).toEqual(keysOf(definition.config).toSorted());
  });

  test.skipIf(withoutEpisode.includes(type))('the shown episode is in a transcript', () => {
    const own = readdirSync(transcripts).filter(
      name => text.includes(name) || name.startsWith(type.replaceAll('_', '-')),
    );
    const played = own.map(name => readFileSync(join(transcripts, name), 'utf8').split('\n'));
    const blocks = shownBlocks(text);
    expect([blocks.length > 0, played.length > 0]).toEqual([true, true]);
    for (const block of blocks) {
      const lacks = played.map(transcript => missing(block, transcript));
      expect(lacks.includes(undefined) ? [] : lacks, block.join('\n')).toEqual([]);
    }
  });
});

test('an invented line is detected', () => {
  const played = ['P__', '> Left: reward 0, {"success":false}', '_P_'];
  expect(missing(['P__', '> Left: reward 0', '_P_'], played)).toBeUndefined();
  expect(missing(['P__', '> Left: reward 1', '_P_'], played)).toBe('> Left: reward 1');
  expect(missing(['_P_', 'P__'], played)).toBe('P__');
});
