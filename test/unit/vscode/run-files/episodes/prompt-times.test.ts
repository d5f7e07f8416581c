// Whether a prompt was played before and after an episode's step, according to the run's episode index.
import { appendFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { PromptTimes } from '../../../../../extension/vscode/run-files/episodes/prompt-times';
import { addToIndex, indexLine } from '../../../../../extension/run-data/episode-index-line';
import { runFiles } from '../../../../../extension/run-data/run-file-names';
import { type Episode } from '../../../../../extension/run-data/episode';
import { lakeEpisode } from '../../traces/lake-episode';

const at = (mode: 'train' | 'val', step: number, seed: number, state: string): Episode => {
  const lake = lakeEpisode();
  const [turn] = lake.turns;
  return { ...lake, mode, step, seed, turns: [{ ...turn, state }] };
};

const lineOf = (...episodes: Episode[]): string => {
  const line = indexLine(episodes[0].mode, episodes[0].step, 0);
  for (const episode of episodes) addToIndex(line, episode, line.to + 100, 10);
  return `${JSON.stringify(line)}\n`;
};

it('is decided by seed and first state, within the same kind of rollout', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'ragen-prompts-'));
  const index = join(folder, runFiles.episodeIndex);
  mkdirSync(dirname(index), { recursive: true });
  const first = at('val', 2, 7, 'A');
  const times = new PromptTimes();
  expect(await times.around(folder, first)).toEqual({ earlier: true, later: true }); // unknown without an index
  const lone = at('train', 4, 9, 'C');
  writeFileSync(index, lineOf(first) + lineOf(at('val', 4, 7, 'B')) + lineOf(lone, at('train', 4, 7, 'A')));
  const both = await Promise.all([times.around(folder, first), times.around(folder, at('val', 4, 7, 'B'))]);
  expect(both).toEqual([
    { earlier: false, later: true },
    { earlier: true, later: false },
  ]);
  expect(await times.around(folder, lone)).toEqual({ earlier: false, later: false });
  appendFileSync(index, lineOf(at('train', 6, 12, 'C')));
  expect(await times.around(folder, lone)).toEqual({ earlier: false, later: true });
});
