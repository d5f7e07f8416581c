// True states in a rollout: which requests ask for them, how descriptions are rewarded, and what a record keeps.
import { describe, expect, it } from 'vitest';
import type {
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
} from '../../../../extension/protocol/environment-link';
import { rewards } from '../../../../extension/trainer/config/schema-rewards';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import type { PromptFormat } from '../../../../extension/trainer/rollout/prompt-format';
import { characterTokenizer, corridor, corridorOptions, CorridorPool, ScriptedGenerator } from './scripted-rollout';

/** A corridor that gives its true state as JSON. */
class StatedPool extends CorridorPool {
  readonly asked: (string | undefined)[] = [];

  override async reset(episodes: EpisodeReset[]): Promise<EpisodeState[]> {
    const states = await super.reset(episodes);
    return states.map((state, i) => this.stated(state, episodes[i].state_form));
  }

  override async step(episodes: EpisodeActions[]): Promise<EpisodeStep[]> {
    const states = await super.step(episodes);
    return states.map((state, i) => this.stated(state, episodes[i].state_form));
  }

  private stated<State extends EpisodeState>(state: State, form: string | undefined): State {
    this.asked.push(form);
    return form ? { ...state, true_state: JSON.stringify({ player: [0, this.live.get(state.episode)] }) } : state;
  }
}

const stated: LoadedEnvironment = { ...corridor, state_forms: { structured: 'a JSON object' } };
const options = corridorOptions();
const single = {
  ...options.es_manager.train,
  ...{ env_groups: 1, group_size: 1, env_configs: { tags: ['Corridor'], n_groups: [1] } },
};
async function play(prompt_format: PromptFormat | null, answer: (turn: number) => string, environment = stated) {
  const pool = new StatedPool();
  const components = { format: { weight: 0.5 }, observation: { weight: 0.5 }, prediction: { weight: 0.25 } };
  const Corridor = { ...options.custom_envs.Corridor, prompt_format, rewards: rewards.parse(components) };
  const changes = corridorOptions({
    custom_envs: { Corridor },
    es_manager: { ...options.es_manager, train: single },
  });
  const agent = new AgentProxy(new ScriptedGenerator((_, turn) => answer(turn)), pool, characterTokenizer, changes);
  const { episodes } = await agent.rollout({ mode: 'train', step: 1, environments: [environment], seed: 0 });
  return { pool, episode: episodes[0] };
}
const described = (at: number, next: number, action = 'Right') =>
  `<observation>{"player": [0, ${at}]}</observation><reasoning>on</reasoning><prediction>{"player": [0, ${next}]}</prediction></think><answer>${action}</answer>`;
const format = 'grounding_worldmodeling_structured';

describe('descriptions of states', () => {
  it('are compared with the true states before and after the actions', async () => {
    const answers = ['', described(0, 1), described(0, 2), described(2, 1)];
    const { episode, pool } = await play(format, turn => answers[turn] ?? described(9, 9));
    expect(new Set(pool.asked)).toEqual(new Set(['structured']));
    expect(episode.turns.slice(0, 3).map(({ true_state, true_next_state }) => [true_state, true_next_state])).toEqual([
      ['{"player":[0,0]}', '{"player":[0,1]}'],
      ['{"player":[0,1]}', '{"player":[0,2]}'],
      ['{"player":[0,2]}', '{"player":[0,3]}'],
    ]);
    expect(episode.turns.slice(0, 3).map(({ components }) => components)).toEqual([
      { format: 1, observation: 1, prediction: 1 },
      { format: 1, observation: 0, prediction: 1 },
      { format: 1, observation: 1, prediction: 0 },
    ]);
    expect(episode.turns[0].component_reward).toBe(0.5 + 0.5 + 0.25);
    expect(episode.messages[0].content).toContain('Form of both descriptions: a JSON object.');
  });

  it('have no value if the answer departs from the format or has an invalid action; the state is then unchanged', async () => {
    const answers = ['', 'on</think><answer>Right</answer>', described(0, 0, 'Jump'), described(0, 1)];
    const { episode } = await play(format, turn => answers[turn] ?? described(9, 9));
    expect(episode.turns.slice(0, 3).map(({ components, executed }) => [components, executed.length])).toEqual([
      [{ format: 0 }, 0],
      [{ format: 0 }, 0],
      [{ format: 1, observation: 1, prediction: 1 }, 1],
    ]);
    expect(episode.turns[0]).toMatchObject({ true_state: '{"player":[0,0]}', true_next_state: '{"player":[0,0]}' });
  });

  it('are not asked for by formats without descriptions, and in forms that the environment does not give', async () => {
    const thought = () => 'on</think><answer>Right</answer>';
    for (const [chosen, environment] of [
      ['free_think', stated],
      [null, stated],
      [format, corridor],
      ['grounding_symbolic', stated],
    ] as const) {
      const { pool, episode } = await play(chosen, thought, environment);
      expect(new Set(pool.asked)).toEqual(new Set([undefined]));
      expect(episode.turns[0]).not.toHaveProperty('true_state');
    }
  });
});
