// Adds reward components, judgements and tool calls to an episode of a stored run, which has none.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Episode } from '../../extension/run-data/episode';
import { scoredEpisode } from '../e2e/preview/scored-episode';

/** Changes the first episode of step 1 of the run in `folder`, and returns it. */
export function scoreAndCall(folder: string): Episode {
  const file = join(folder, 'episodes/step-000001.jsonl');
  const [first, ...others] = readFileSync(file, 'utf8').split('\n');
  const episode = scoredEpisode(JSON.parse(first) as Episode);
  writeFileSync(file, [JSON.stringify(episode), ...others].join('\n'));
  return episode;
}
