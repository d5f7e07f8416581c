// `ragen episodes`: episodes that match the filter, newest first; complete episodes; one HTML file in which no episode
// text becomes markup.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EpisodeRow } from '../../../../extension/run-data/episode-table';
import type { Episode } from '../../../../extension/run-data/episode';
import { document, killAll, leaseOf, ragen, readRun, startDetached, until } from '../../../support/terminal';
import { makeWorkspace, wordsEnvironment } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let run: string;
let all: Episode[];
const asked = async <T = EpisodeRow[]>(...args: string[]): Promise<T> => {
  const { code, answer, stderr } = await document<T>(workspace.folder, [
    'episodes',
    basename(run),
    '--limit',
    '1000',
    ...args,
  ]);
  expect(code, stderr).toBe(0);
  return answer;
};
const idsWhere = (holds: (episode: Episode) => boolean): string[] =>
  all
    .filter(holds)
    .map(({ id }) => id)
    .sort();
const idsOf = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id).sort();

beforeAll(async () => {
  workspace = makeWorkspace();
  workspace.write('environments/words.ts', wordsEnvironment().replaceAll("'word '", "'<b>word</b> & '"));
  run = await startDetached(workspace.folder, ['trainer.total_training_steps=2']);
  await until('it ends', () => !leaseOf(run));
  all = readRun(run).episodes;
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

test('lists all, newest first', async () => {
  const rows = await asked();
  expect(idsOf(rows)).toEqual(idsWhere(() => true));
  const steps = rows.map(({ step }) => step);
  expect(steps).toEqual(steps.toSorted((a, b) => b - a));
  expect(await asked('--limit', '3')).toEqual(rows.slice(0, 3));
});

test('lists the episodes that match the filter', async () => {
  expect(idsOf(await asked('mode:train', 'success:false'))).toEqual(idsWhere(e => e.mode === 'train' && !e.success));
  expect(idsOf(await asked('step:2', 'score>0'))).toEqual(idsWhere(e => e.step === 2 && e.score > 0));
  const turned = await ragen(workspace.folder, [
    'episodes',
    basename(run),
    '--json',
    '--limit',
    '99',
    '--',
    '-mode:val',
  ]);
  expect(idsOf(JSON.parse(turned.stdout) as EpisodeRow[])).toEqual(idsWhere(e => e.mode === 'train'));
  const seed = all[0].seed % 7;
  expect(idsOf(await asked(`text:"word</b> & ${seed}"`))).toEqual(
    idsWhere(e => e.turns[0].state.endsWith(`& ${seed}`)),
  );
  const wrong = await ragen(workspace.folder, ['episodes', basename(run), 'colour:red']);
  expect([wrong.code, wrong.stderr]).toEqual([
    1,
    expect.stringMatching(/^filter: “colour” is not a field: use success, /),
  ]);
});

test('prints complete episodes', async () => {
  const [first] = await asked<Episode[]>('--print', '--limit', '1');
  expect(first).toEqual(all.find(({ id }) => id === first.id));
  const { stdout } = await ragen(workspace.folder, ['episodes', basename(run), '--print', '--limit', '1']);
  for (const { state, raw } of first.turns) expect(stdout).toContain(`${state}\n\n${raw}`.split('\n')[0]);
});

test('writes one HTML file without markup from episode texts', async () => {
  const { file, episodes } = await asked<{ file: string; episodes: number }>('--html', 'out.html', 'mode:val');
  expect([file, episodes]).toEqual([join(workspace.folder, 'out.html'), idsWhere(e => e.mode === 'val').length]);
  const text = readFileSync(file, 'utf8');
  expect(text.match(/<details/g)).toHaveLength(episodes);
  expect(text).toContain('&lt;b&gt;word&lt;/b&gt; &amp; ');
  expect(text).not.toContain('<b>');
  expect(text).not.toMatch(/<script/);
});
