import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import {
  byScore,
  EpisodeHeads,
  groupOf,
  readHeads,
  samePrompt,
  stepsTowards,
} from '../../../../../extension/vscode/run-files/episodes/episode-heads';
import type { Episode } from '../../../../../extension/run-data/episode';
import { lakeEpisode } from '../../traces/lake-episode';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ragen-heads-'));
  file = join(folder, 'step-000018.jsonl');
});
afterEach(() => rmSync(folder, { recursive: true }));

const episode = (member: number, change: Partial<Episode> = {}): Episode => ({
  ...lakeEpisode(),
  id: `train-000018-g003-m0${member}`,
  member,
  ...change,
});
const write = (...lines: string[]) => writeFileSync(file, lines.map(line => `${line}\n`).join(''));

test('every complete line is found at its offset and read from there', async () => {
  const long = episode(1, { final_state: 'é'.repeat(2_200_000) }); // longer than one read buffer
  write(...[episode(0), long, episode(2)].map(each => JSON.stringify(each)), '{"torn":');
  const heads = await readHeads(file);
  expect(heads.map(({ id }) => id)).toEqual([0, 1, 2].map(n => `train-000018-g003-m0${n}`));
  const found = new EpisodeHeads();
  expect(await found.episode(file, 'train-000018-g003-m01')).toEqual(long);
  expect(await found.episode(file, 'train-000018-g003-m02')).toEqual(episode(2));
  expect(await found.episode(file, 'train-000018-g009-m00')).toBeUndefined();
});

test('a line with another key order, or with a state too long for its head, is parsed completely', async () => {
  const { turns, ...facts } = episode(0);
  const far = episode(1, { turns: [{ ...turns[0], state: 'x'.repeat(20_000) }] });
  write(JSON.stringify({ turns, ...facts }), JSON.stringify(far), 'no episode');
  const [first, second, none] = await readHeads(file);
  write(JSON.stringify({ ...facts, turns }));
  expect(first).toEqual({ ...(await readHeads(file))[0], length: first.length });
  expect(second).toMatchObject({ id: far.id, seed: 10272, success: true });
  expect(none).toBeUndefined();
});

test('a rewritten file is reread; a missing one has no episodes', async () => {
  const heads = new EpisodeHeads();
  expect(await heads.ofFile(file)).toEqual([]);
  write(JSON.stringify(episode(0)));
  expect(await heads.ofFile(file)).toHaveLength(1);
  write(JSON.stringify(episode(0)), JSON.stringify(episode(1)));
  expect(await heads.ofFile(file)).toHaveLength(2);
});

test('finds groups, the best and the worst episode, and the same prompt', async () => {
  write(
    ...[
      episode(2, { score: 0.2 }),
      episode(1, { score: 0.9 }),
      episode(0, { group_id: 4, seed: 7 }),
      episode(3, { group_id: 5, tag: 'Other' }),
      episode(4, { group_id: 6, seed: 8, turns: [] }),
    ].map(each => JSON.stringify(each)),
  );
  const heads = await readHeads(file);
  expect(groupOf(heads, { group_id: 3 }).map(({ member }) => member)).toEqual([1, 2]);
  expect(byScore(groupOf(heads, { group_id: 3 }))[0].score).toBe(0.9);
  expect(heads.slice(1).map(head => samePrompt(heads[0], head))).toEqual([true, true, false, false]);
});

test('finds steps before and after, nearest first, of the same kind', () => {
  const files = [3, 1, 2, 5].flatMap(step => [
    { step, mode: 'train' as const },
    { step, mode: 'val' as const },
  ]);
  const steps = (direction: -1 | 1) => stepsTowards(files, { step: 3, mode: 'val' }, direction);
  expect(steps(-1)).toEqual([2, 1].map(step => ({ step, mode: 'val' })));
  expect(steps(1)).toEqual([{ step: 5, mode: 'val' }]);
});
