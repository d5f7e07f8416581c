// Adds reward components, judgements and tool calls to an episode of a stored run, which has none.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Episode } from '../../extension/run-data/episode';

/** Changes the first episode of step 1 of the run in `folder`, and returns it. */
export function scoreAndCall(folder: string): Episode {
  const file = join(folder, 'episodes/step-000001.jsonl');
  const [first, ...others] = readFileSync(file, 'utf8').split('\n');
  const episode = JSON.parse(first) as Episode;
  const scored = { components: { clarity: 0.5, brevity: -0.25 }, component_reward: 0.0625 };
  Object.assign(episode.turns[0], scored, {
    calls: [
      { name: 'lookup', arguments: { item: 'drum', rows: [1, 2] }, result: '3 "drums"', error: false, ms: 1.5 },
      { name: '', arguments: {}, result: 'no such tool', error: true, ms: 0 },
    ],
  });
  const judgement = { model: 'judge', score: 0.75, text: 'Score: 7.5', cached: false, tokens: 120, cost: 0.001 };
  Object.assign(episode, scored, {
    judgements: { clarity: [judgement, { ...judgement, model: 'other', score: null, text: 'no answer' }] },
  });
  writeFileSync(file, [JSON.stringify(episode), ...others].join('\n'));
  return episode;
}
