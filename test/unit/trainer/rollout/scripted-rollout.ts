// A small setup for rollout tests: a tokenizer with one id per character, a generator with scripted answers, and a
// corridor environment in memory. All three implement the rollout's interfaces.
import type {
  EpisodeActions,
  EpisodeReset,
  EpisodeState,
  EpisodeStep,
  LoadedEnvironment,
} from '../../../../extension/protocol/environment-link';
import type { GeneratedRow, GenerationRow, SamplingOptions } from '../../../../extension/engine/generation-calls';
import { episodeContext } from '../../../../extension/trainer/rollout/episode-context';
import type {
  AgentProxyOptions,
  ContextSettings,
  TextGenerator,
} from '../../../../extension/trainer/rollout/rollout-request';
import { nextMessages, type ChatMessage } from '../../../../extension/models/tokenizer/chat-template';
import type { EpisodeContext } from '../../../../extension/trainer/rollout/context-manager';
import type { PromptTokenizer } from '../../../../extension/trainer/rollout/prompt-tokenizer';
import type { CurrentTurn } from '../../../../extension/trainer/rollout/context-window';
import { parseResponse, type TurnPrompt } from '../../../../extension/trainer/rollout/turn-protocol';
import type { EnvironmentPool } from '../../../../extension/environments/client/environment-pool';

export const turnStart = 1;
export const turnEnd = 2;
const firstCharacter = 10;

export const encodeText = (text: string): number[] => [...text].map(c => (c.codePointAt(0) ?? 0) + firstCharacter);

/** A chat template like Qwen's, `<|im_start|>role\n…<|im_end|>\n`, with one id per character. */
export const characterTokenizer: PromptTokenizer = {
  encodePrompt: (messages: readonly ChatMessage[], prefix: string) => [
    ...messages.flatMap(({ role, content }) => [
      turnStart,
      ...encodeText(`${role}\n${content}`),
      turnEnd,
      ...encodeText('\n'),
    ]),
    turnStart,
    ...encodeText(`assistant\n${prefix}`),
  ],
  encodeContinuation: (answer, next, prefix) => [
    ...(answer.at(-1) === turnEnd ? [] : [turnEnd]),
    ...encodeText('\n'),
    ...characterTokenizer.encodePrompt(nextMessages(next), prefix),
  ],
  encodeEnd: answer => [...(answer.at(-1) === turnEnd ? [] : [turnEnd]), ...encodeText('\n')],
  turnMarker: turnStart,
  decode: ids =>
    ids
      .filter(id => id >= firstCharacter)
      .map(id => String.fromCodePoint(id - firstCharacter))
      .join(''),
};

/** A context with the system message `S`; `changes` may set the mode, which is `full` by default. */
export function openContext(
  changes: Partial<AgentProxyOptions['agent_proxy']> &
    Partial<Omit<ContextSettings, 'agent_proxy' | 'rollout'>> & {
      max_model_len?: number;
      response_length?: number;
    } = {},
): EpisodeContext {
  const { max_model_len = 1000, response_length = 10, enable_response_mask = true, ragen = false, ...own } = changes;
  const agent_proxy = { ...corridorOptions().agent_proxy, ...own };
  const settings = { agent_proxy, enable_response_mask, ragen, rollout: { max_model_len, response_length } };
  return episodeContext(characterTokenizer, settings, 'S', 'corridor');
}

/** The prompt of a turn, for tests of contexts. */
export const asked = (turn: number, state = `s${turn}`): TurnPrompt => ({
  turn,
  state,
  actions_left: 5,
  warn: false,
  max_tokens: 50,
});

/** A completed turn. */
export const past = (turn: number, raw: string, reward = -0.1): CurrentTurn['history'][number] => {
  const { thought, answer, actions } = parseResponse(raw, corridorOptions().agent_proxy);
  return { state: `s${turn}`, raw, thought, answer, reward, executed: actions };
};

/** Text of ids, with special tokens shown. */
export const showIds = (ids: ArrayLike<number>): string =>
  Array.from(ids, id =>
    id === turnStart ? '<|im_start|>' : id === turnEnd ? '<|im_end|>' : characterTokenizer.decode([id]),
  ).join('');

/**
 * A generator that answers with `script(row, turn)`, without the generation prefix. A text that ends with `…` is
 * truncated there, without a stop token.
 */
export class ScriptedGenerator implements TextGenerator {
  readonly calls: { rows: GenerationRow[]; sampling: SamplingOptions }[] = [];
  readonly live = new Set<string>();
  private readonly turns = new Map<string, number>();

  constructor(private readonly script: (row: string, turn: number) => string) {}

  async generate(
    rows: readonly GenerationRow[],
    sampling: SamplingOptions,
    onTokens?: (sampled: number) => void,
  ): Promise<GeneratedRow[]> {
    this.calls.push({ rows: rows.map(row => ({ ...row, append: [...row.append] })), sampling });
    onTokens?.(rows.length);
    return rows.map(({ row }) => {
      this.live.add(row);
      const turn = (this.turns.get(row) ?? 0) + 1;
      this.turns.set(row, turn);
      const text = this.script(row, turn);
      const cut = text.endsWith('…');
      const ids = cut ? encodeText(text.slice(0, -1)) : [...encodeText(text), turnEnd];
      return { row, ids, logprobs: ids.map((_, index) => -0.25 * ((index % 4) + 1)), finish: cut ? 'length' : 'stop' };
    });
  }

  release(rows: readonly string[]): void {
    for (const row of rows) this.live.delete(row);
  }
}

export const corridor: LoadedEnvironment = {
  tag: 'Corridor',
  name: 'corridor',
  source: '/envs/corridor/index.ts',
  version: 'v1',
  bundle: '',
  files: [],
  config: {},
  instruction: 'Walk to the goal at the right end.',
  legend: { P: 'player', G: 'goal', _: 'floor' },
  actions: { 1: 'Up', 2: 'Down', 3: 'Left', 4: 'Right' },
  has_solver: false,
};

/**
 * A corridor of five cells. The seed selects the start (0…2), the last cell is the goal, and leaving on the left loses.
 * Each move costs 0.1.
 */
export class CorridorPool implements EnvironmentPool {
  readonly live = new Map<string, number>();
  readonly resets: EpisodeReset[] = [];
  /**
   * Returns the message with which an episode fails on these actions (empty at its reset), or undefined for no failure.
   */
  failure: (episode: string, actions: (number | string)[]) => string | undefined = () => undefined;

  async reset(episodes: EpisodeReset[]): Promise<EpisodeState[]> {
    this.resets.push(...episodes);
    return episodes.map(({ episode, seed }) => {
      this.live.set(episode, seed % 3);
      const message = this.failure(episode, []);
      return {
        episode,
        observation: this.observe(episode),
        version: 'v1',
        ...(message ? { error: { kind: 'threw' as const, message } } : {}),
      };
    });
  }

  async step(episodes: EpisodeActions[]): Promise<EpisodeStep[]> {
    return episodes.map(({ episode, actions }) => {
      const outcomes: EpisodeStep['outcomes'] = [];
      for (const action of actions) {
        const from = this.live.get(episode) ?? NaN;
        const to = from + (action === 4 ? 1 : action === 3 ? -1 : 0);
        this.live.set(episode, to);
        const success = to === 4;
        const terminated = success || to < 0;
        const reward = success ? -0.1 + 11 : -0.1;
        const info = { success, action_is_valid: true, action_is_effective: to !== from, note: 'walked' };
        outcomes.push({ action, reward, terminated, truncated: false, info });
        if (terminated) break;
      }
      const message = this.failure(episode, actions);
      return {
        episode,
        observation: this.observe(episode),
        version: 'v1',
        outcomes,
        ...(message ? { error: { kind: 'threw' as const, message } } : {}),
      };
    });
  }

  async closeEpisodes(episodes: string[]): Promise<void> {
    for (const episode of episodes) this.live.delete(episode);
  }

  private observe(episode: string): string {
    const at = this.live.get(episode);
    return [0, 1, 2, 3, 4].map(cell => (cell === at ? 'P' : cell === 4 ? 'G' : '_')).join('');
  }
}

const sampling = { temperature: 1, top_p: 1, top_k: -1, min_p: 0, repetition_penalty: 1, do_sample: true };

/**
 * Options of a small batch: 2 groups × 2 episodes of the corridor, 3 turns of up to 2 actions, 10 actions per episode.
 */
export function corridorOptions(changes: Partial<AgentProxyOptions> = {}): AgentProxyOptions {
  const groups = { env_groups: 2, group_size: 2, env_configs: { tags: ['Corridor'], n_groups: [2] } };
  return {
    seed: { train: 10000, val: 123 },
    agent_proxy: {
      max_turn: 3,
      enable_think: true,
      action_sep: '||',
      max_actions_per_turn: 2,
      context_window_mode: 'full',
      max_context_window: -1,
    },
    enable_response_mask: true,
    ragen: false,
    rollout: {
      max_model_len: 4000,
      response_length: 100,
      stop: [],
      ...sampling,
      val_kwargs: { ...sampling, temperature: 0.5 },
    },
    es_manager: { format_penalty: -0.1, train: groups, val: { ...groups, group_size: 1 } },
    custom_envs: { Corridor: { max_actions_per_traj: 10, max_tokens: 50 } },
    async_rollout: true,
    max_failed_episodes_share: 0.5,
    stop_token_ids: [turnEnd],
    ...changes,
  };
}
