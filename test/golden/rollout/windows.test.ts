// Rollouts in the other context window modes and without thinking, as text: the prompt of each turn and the tokens
// trained on («…»), one block per training sample. `vitest -u` rewrites the files after an intended change.
import { expect, it } from 'vitest';
import { AgentProxy } from '../../../extension/trainer/rollout/agent-proxy';
import { characterTokenizer, corridor, corridorOptions, CorridorPool, ScriptedGenerator, showIds } from '../../unit/trainer/rollout/scripted-rollout';

const thinking = [
  'two cells</think><answer>Right || Right</answer>',
  'fly</think><answer>Fly</answer>',
  'I forgot the tags',
  'back</think> <answer>left || up || up</answer> done',
];
const answers = ['Right || Right</answer>', 'Fly</answer>', 'Left', 'left || up || up</answer> done'];

type Changes = Partial<ReturnType<typeof corridorOptions>>;

async function transcript(script: string[], proxy: Partial<Changes['agent_proxy']>, more: Changes = {}): Promise<string> {
  const options = corridorOptions(more);
  const groups = { env_groups: 1, group_size: 1, env_configs: { tags: ['Corridor'], n_groups: [1] } };
  const agent = new AgentProxy(new ScriptedGenerator((_, turn) => script[turn - 1]), new CorridorPool(), characterTokenizer, {
    ...options,
    agent_proxy: { ...options.agent_proxy, max_turn: 4, ...proxy },
    es_manager: { ...options.es_manager, train: groups },
  });
  const { episodes } = await agent.rollout({ mode: 'train', step: 0, environments: [corridor] });
  return episodes[0].samples
    .map(({ ids, mask, turns }) => {
      let text = `=== turns ${turns.map(({ turn }) => turn).join(', ')} ===\n`;
      for (let t = 0; t < ids.length; t++) {
        if (mask[t] && !mask[t - 1]) text += '«';
        text += showIds([ids[t]]);
        if (mask[t] && !mask[t + 1]) text += '»';
      }
      return text;
    })
    .join('\n');
}
const limited = { context_window_mode: 'limited_multi_turn', max_context_window: 2 } as const;
const single = { context_window_mode: 'single_turn', max_context_window: 3 } as const;
const narrow = { rollout: { ...corridorOptions().rollout, max_model_len: 1050 } };

it.each([
  ['limited-multi-turn', () => transcript(thinking, limited)],
  ['single-turn', () => transcript(thinking, single)],
  ['single-turn-whole-history', () => transcript(thinking, { ...single, max_context_window: null })],
  ['full-shortened', () => transcript(thinking, {}, narrow)],
  ['full-shortened-ragen', () => transcript(thinking, {}, { ...narrow, ragen: true })],
  ['full-ragen', () => transcript(thinking, {}, { ragen: true })],
  ['single-turn-ragen', () => transcript(thinking, single, { ragen: true })],
  ['everything-trained', () => transcript(thinking, {}, { enable_response_mask: false })],
  ['no-think', () => transcript(answers, { enable_think: false })],
])('the dialogue %s equals its stored transcript', async (name, play) => {
  await expect(await play()).toMatchFileSnapshot(`windows/${name}.txt`);
});
