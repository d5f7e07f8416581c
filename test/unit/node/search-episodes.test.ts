// The search over the episodes of several runs: what it finds, in which order, and that it reads no more than needed.
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { searchEpisodes, type EpisodeHit } from '../../../extension/node/search-episodes';
import { makeRun } from '../../e2e/fixtures/make-run.mjs';
import { episodesOf } from '../../e2e/preview/data';
import { temporaryFolder } from '../../support/temporary-folder';

const temporary = temporaryFolder();

/** Writes the episodes of a step, the first of which says `text` in a turn. */
function write(run: string, name: string, text: string, at: 'raw' | 'final_state' | 'error' = 'raw'): string {
  const folder = join(temporary(), run);
  mkdirSync(join(folder, 'episodes'), { recursive: true });
  const episodes = episodesOf(7, 'train').slice(0, 3);
  const [first] = episodes;
  const last = first.turns.length - 1;
  const changed =
    at === 'raw'
      ? { ...first, turns: first.turns.map((turn, i) => (i === last ? { ...turn, raw: `${turn.raw} ${text}` } : turn)) }
      : { ...first, [at]: text };
  const lines = [changed, ...episodes.slice(1)].map(episode => `${JSON.stringify(episode)}\n`);
  writeFileSync(join(folder, 'episodes', name), lines.join(''));
  return folder;
}

async function all(folders: string[], text: string): Promise<EpisodeHit[]> {
  const hits: EpisodeHit[] = [];
  for await (const hit of searchEpisodes(folders, text)) hits.push(hit);
  return hits;
}

it('finds a text in the answer of a turn, ignoring case, with quotes and line breaks', async () => {
  const folder = write('a', 'step-000007.jsonl', 'I am\nZEBRA in "the corner" äÖ');
  const [first] = episodesOf(7, 'train');
  for (const text of ['zebra', 'am\nzebra', '"THE corner"', 'ÄÖ']) {
    const hits = await all([folder], text);
    expect(hits, text).toMatchObject([
      { folder, step: 7, mode: 'train', id: first.id, turn: first.turns.at(-1)!.turn, part: 'answer' },
    ]);
    expect(hits[0].excerpt).toContain('I am ZEBRA in "the corner" äÖ');
  }
  expect(await all([folder], ' ')).toEqual([]);
  expect(await all([folder], 'group_id')).toEqual([]); // a key of the file, not a text
});

it('finds the final state and the error', async () => {
  expect(await all([write('a', 'val-000007.jsonl', 'the exit is shut', 'final_state')], 'exit is')).toMatchObject([
    { turn: null, part: 'final state', mode: 'val' },
  ]);
  expect(await all([write('b', 'step-000007.jsonl', 'grid[row] is undefined', 'error')], '[row]')).toMatchObject([
    { turn: null, part: 'error' },
  ]);
});

it('searches runs in the given order, newest step first, and skips what it cannot read', async () => {
  const [a, b] = [write('a', 'step-000002.jsonl', 'zebra'), write('b', 'step-000009.jsonl', 'zebra')];
  write('a', 'step-000012.jsonl', 'zebra');
  appendFileSync(
    join(a, 'episodes', 'step-000012.jsonl'),
    'zebra, but no episode\n{"zebra": 1}\n{"incomplete": "zebra',
  );
  symlinkSync(join(b, 'episodes', 'step-000009.jsonl'), join(a, 'episodes', 'step-000020.jsonl'));
  mkdirSync(join(a, 'episodes', 'step-000030.jsonl'));
  const hits = await all([b, join(temporary(), 'gone'), a], 'zebra');
  expect(hits.map(({ folder, step }) => [folder, step])).toEqual([
    [b, 9],
    [a, 12],
    [a, 2],
  ]);
});

it('yields the first hit before it reads later files, and ends when it is cancelled', async () => {
  const folders = Array.from({ length: 40 }, (_, i) => write(`run-${i}`, 'step-000007.jsonl', 'zebra'));
  const control = new AbortController();
  const shares: number[] = [];
  const search = searchEpisodes(folders, 'zebra', { signal: control.signal, progress: share => shares.push(share) });
  expect((await search.next()).value).toMatchObject({ folder: folders[0] });
  expect(shares).toEqual([0]);
  control.abort();
  expect((await search.next()).done).toBe(true);
  expect(shares).toEqual([0]);
});

it('finds all episodes of generated runs', async () => {
  const folders = Array.from({ length: 3 }, (_, i) =>
    makeRun(temporary(), {
      id: `r${i}`,
      name: 'lake',
      state: 'finished',
      step: 20,
      seed: i + 1,
      groups: 2,
      members: 2,
    }),
  );
  const hits = await all(folders, 'the goal is down and');
  expect(new Set(hits.map(({ folder }) => folder)).size).toBe(3);
  expect(new Set(hits.map(({ folder, id }) => `${folder} ${id}`)).size).toBe(hits.length);
});
