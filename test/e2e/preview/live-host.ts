// In-memory host for the Live page: an episode of the generated runs, as a viewer receives it in the middle of a turn.
import { liveReady, type LiveSnapshot } from '../../../extension/protocol/live-page';
import type { Episode } from '../../../extension/run-data/episode';
import type { WatchedEpisode, WatchedTurn } from '../../../extension/protocol/trainer-link';
import { episodesOf, hostileTexts, runAt } from './data';
import type { MemoryHost } from './memory-host';

export type LiveScenario = 'playing' | 'lake' | 'over' | 'update' | 'paused' | 'finished' | 'elsewhere' | 'hostile';

/** Splits a text into token-like pieces, with log-probs derived from their index and length. */
const tokensOf = (text: string): WatchedTurn['tokens'] =>
  (text.match(/<\/?\w+>|\s?[^\s<]{1,6}|\s+|</g) ?? []).map((piece, i) => ({
    text: piece,
    logprob: -5 * (((i * 7919 + piece.length * 104729) % 97) / 97) ** 3,
  }));

/**
 * A stored episode as a viewer sees it after `turns` turns. With `tokens`, the next turn is being generated and has
 * that many tokens.
 */
export function watchedEpisode(episode: Episode, turns: number, tokens?: number): WatchedEpisode {
  const { id, mode, step, tag, group_id, member, seed, environment, final_state } = episode;
  const prefix = '<think>';
  const shown = episode.turns.slice(0, turns + (tokens === undefined ? 0 : 1)).map((turn, i): WatchedTurn => {
    const { thought, answer, executed, reward, penalty, components, component_reward } = turn;
    const all = tokensOf(turn.raw.slice(prefix.length));
    const done = i < turns;
    return {
      ...{ turn: turn.turn, state: turn.state, actions_left: turn.actions_left!, prefix },
      ...(turn.role !== undefined && { role: turn.role }),
      tokens: done ? all : all.slice(0, tokens),
      outcome: done
        ? { thought, answer, executed, reward, penalty, ...(components && { components, component_reward }) }
        : null,
    };
  });
  const over = turns === episode.turns.length;
  const sum = (key: 'reward' | 'penalty') =>
    episode.turns.slice(0, turns).reduce((total, turn) => total + turn[key], 0);
  return {
    ...{ id, mode, step, tag, group_id, member, seed, environment, over },
    turns: shown,
    state: over ? final_state : episode.turns[turns].state,
    success: over && episode.success === true,
    reward: sum('reward'),
    penalty: sum('penalty'),
  };
}

export function liveHost(scenario: LiveScenario): MemoryHost {
  const run = runAt(12, 200);
  run.status.phase = scenario === 'update' ? 'update' : 'rollout';
  if (scenario === 'paused') run.status.state = 'paused';
  if (scenario === 'elsewhere') run.otherHost = 'node-7';
  if (scenario === 'finished')
    Object.assign(run, { live: false, status: { ...run.status, state: 'finished', step: 200 } });
  const all = episodesOf(13, 'train').filter(({ turns }) => turns.length > 2);
  const lake = all.find(({ tag, success }) => /lake/i.test(tag) && success) ?? all[0];
  const long = all.find(({ tag }) => !/lake/i.test(tag)) ?? all[0];
  const episodes: Record<LiveScenario, WatchedEpisode | null> = {
    playing: watchedEpisode(long, 2, 14),
    lake: watchedEpisode(lake, 1, 26),
    over: watchedEpisode(lake, lake.turns.length),
    ...{ update: null, paused: null, finished: null, elsewhere: null },
    hostile: hostile(watchedEpisode(long, 2, 14)),
  };
  const tags = scenario === 'elsewhere' ? [] : [...new Set(all.map(({ tag }) => tag))];
  return {
    answer(method, params) {
      if (method !== liveReady.method) throw new Error(`preview: no answer to ${method}`);
      return { run, tags, choice: params as object, episode: episodes[scenario] } satisfies LiveSnapshot;
    },
  };
}

/** Replaces every text of model and environment by a markup text. */
function hostile(episode: WatchedEpisode): WatchedEpisode {
  const text = (at: number) => hostileTexts[at % hostileTexts.length];
  const turns = episode.turns.map((turn, t) => ({
    ...turn,
    state: text(t),
    tokens: turn.tokens.map((token, i) => ({ ...token, text: text(i) })),
    outcome: turn.outcome && { ...turn.outcome, executed: [text(t)], answer: text(t + 1), thought: text(t + 2) },
  }));
  return { ...episode, tag: text(3), turns, over: true, state: text(4), error: text(5) };
}
