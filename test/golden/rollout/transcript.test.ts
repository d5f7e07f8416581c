// One complete rollout as text: the prompt, the response («…» marks the tokens that are trained on), and the results.
// The golden file beside this test documents the turn protocol; `vitest -u` rewrites it after an intended change.
import { expect, it } from 'vitest';
import { AgentProxy } from '../../../extension/trainer/rollout/agent-proxy';
import type { RolloutEpisode } from '../../../extension/trainer/rollout/rollout-batch';
import {
  characterTokenizer,
  corridor,
  corridorOptions,
  CorridorPool,
  ScriptedGenerator,
  showIds,
} from '../../unit/trainer/rollout/scripted-rollout';

const answers: Record<string, string[]> = {
  'g000-m00': ['two cells</think><answer>Right || Right</answer>', 'one more</think> <answer>right</answer> done'],
  'g000-m01': ['I forgot the tags', 'fly</think><answer>Fly || Up</answer>', 'thinking without an end…'],
  'g001-m00': ['back</think><answer>Left || Left || Left</answer>', 'off the edge</think><answer>Left</answer>'],
  'g001-m01': ['boom</think><answer>Down</answer>'],
};

function transcript(episode: RolloutEpisode): string {
  const { id, seed, terminated, truncated, success, reward, penalty, score, final_state, error, metrics } = episode;
  let from = 0;
  let text = `=== ${id} seed ${seed} ===\n`;
  for (const { ids, turns } of episode.samples)
    for (const { span } of turns) {
      text += `${showIds(ids.slice(from, span[0]))}«${showIds(ids.slice(...span))}»`;
      from = span[1];
    }
  for (const { turn, thought, answer, parsed, executed, reward, penalty, finish, actions_left } of episode.turns)
    text += `\n--- turn ${turn}: ${JSON.stringify({ thought, answer, parsed, executed, reward, penalty, finish, actions_left })}`;
  const outcome = { terminated, truncated, success, reward, penalty, score, final_state, error: error?.message, metrics };
  return `${text}\n--- outcome: ${JSON.stringify(outcome)}\n`;
}

it('the episodes and metrics of a batch equal the stored transcript', async () => {
  const pool = new CorridorPool();
  pool.failure = (episode, actions) => (episode.endsWith('g001-m01') && actions.length > 0 ? 'corridor.ts:3 threw' : undefined);
  const generator = new ScriptedGenerator((row, turn) => answers[row.slice(13)][turn - 1]);
  const agent = new AgentProxy(generator, pool, characterTokenizer, corridorOptions());
  const { episodes, metrics } = await agent.rollout({ mode: 'train', step: 12, environments: [corridor] });
  const text = `${episodes.map(transcript).join('\n')}\n=== batch ===\n${JSON.stringify(metrics, null, 2)}\n`;
  await expect(text).toMatchFileSnapshot('transcript.txt');
});
