// In-memory host for pages that show an episode with roles: a game of two players that the first wins, in which the
// loser's reward is credited to its last turn. `roles play`, `roles live` and `roles episodes` are its scenarios.
import { episodeOpen, episodesReady } from '../../../extension/protocol/episodes-page';
import type { PlayedStep, PlaySession } from '../../../extension/protocol/environment-tools';
import { liveReady, type LiveSnapshot } from '../../../extension/protocol/live-page';
import { playReady } from '../../../extension/protocol/play-page';
import type { WatchedEpisode } from '../../../extension/protocol/trainer-link';
import { addToIndex, indexLine } from '../../../extension/run-data/episode-index-line';
import { EpisodeTable } from '../../../extension/run-data/episode-table';
import type { Episode } from '../../../extension/run-data/episode';
import { episodesOf, runAt } from './data';
import { watchedEpisode } from './live-host';
import type { MemoryHost } from './memory-host';

const instructions = {
  first: 'You play Nim and begin. Who takes the last object wins.',
  second: 'You play Nim and answer. Who takes the last object wins.',
};

/** Role, state and action of each turn, and what the role earned. */
const game = [
  ['first', 'A 2, B 1', 'A1', 0],
  ['second', 'A 1, B 1\nOpponent: A1', 'B1', -1],
  ['first', 'A 1, B 0\nOpponent: B1', 'A1', 1],
] as const;

/** Returns games of the two roles, as episodes of one prompt group. */
export function roleGames(): Episode[] {
  return episodesOf(140, 'train', 1, 4).map(episode => {
    const [model] = episode.turns;
    const turns = game.map(([role, state, action, reward], i) => ({
      ...model,
      ...{ turn: i + 1, role, state, actions_left: 12 - i, reward, penalty: 0 },
      ...{ thought: `I take ${action}.`, answer: action, parsed: [action], executed: [action] },
      ...{ raw: `<think>I take ${action}.</think><answer>${action}</answer>`, info: {} },
    }));
    const own = (role: string, reward: number, success: boolean) => {
      const played = turns.filter(turn => turn.role === role).length;
      return [role, { turns: played, reward, penalty: 0, score: reward, success }] as const;
    };
    return {
      ...episode,
      ...{ tag: 'Nim', environment: { name: 'nim', version: '0123456789abcdef' }, turns },
      ...{ success: true, terminated: true, truncated: false, reward: 0, penalty: 0, score: 0 },
      roles: Object.fromEntries([own('first', 1, true), own('second', -1, false)]),
      final_state: 'A 0, B 0\nOpponent: A1',
      messages: game.flatMap(([role, state, action]) => [
        { role: 'user', content: state, name: role },
        { role: 'assistant', content: `<answer>${action}</answer>`, name: role },
      ]),
    };
  });
}

/** Returns a session of the game after its first `count` actions. */
export function roleSession(count: number): PlaySession {
  const steps = game.slice(0, count).map(([acted, , name, earned], i): PlayedStep => ({
    ...{ action: i, name, acted, observation: i < 2 ? game[i + 1][1] : 'A 0, B 0\nOpponent: A1' },
    ...{ reward: Math.max(0, earned), terminated: i === 2, truncated: false },
    info: { action_is_valid: true, ...(i === 2 && { success: true }) },
    earned: i === 2 ? { first: 1, second: -1 } : { [acted]: 0 },
    ...(i < 2 && { role: game[i + 1][0] }),
  }));
  return {
    ...{ environment: 'nim', source: 'envs/nim/index.ts', version: '0123456789abcdef', files: [], seed: 7 },
    config: { heaps: 2, largest: 2, opponent: 'self' },
    ...{ instruction: '', legend: {}, has_solver: true, total: 0 },
    actions: ['A1', 'B1'].map((name, id) => ({ id, name })),
    roles: Object.entries(instructions).map(([name, instruction]) => ({
      ...{ name, instruction },
      total: steps.reduce((sum, { earned }) => sum + (earned?.[name] ?? 0), 0),
    })),
    first: { observation: game[0][1], role: 'first' },
    steps,
    over: count === game.length,
  };
}

/** Returns the game as a viewer sees it: complete or, with `tokens`, in its second turn. */
export function watchedGame(tokens?: number): WatchedEpisode {
  const [episode] = roleGames();
  const watched = watchedEpisode(episode, tokens === undefined ? game.length : 1, tokens);
  const [first, second] = Object.entries(episode.roles!);
  const begun = { turns: 1, reward: 0, score: 0, success: false };
  const roles =
    tokens === undefined ? [first, second] : [first, second].map(([role, own]) => [role, { ...own, ...begun }]);
  return { ...watched, roles: Object.fromEntries(roles) as WatchedEpisode['roles'] };
}

export function rolesHost(): MemoryHost {
  const episodes = roleGames();
  const table = new EpisodeTable();
  const line = indexLine('train', 140, 0);
  for (const episode of episodes) addToIndex(line, episode, line.to + 1, 0);
  table.addLine(line);
  const answers: Record<string, (params: never) => unknown> = {
    [episodesReady.method]: () => ({ run: runAt(140, 200), epoch: 0, read: 1, rows: table.slice(0) }),
    [episodeOpen.method]: ({ id }: { id: string }) => episodes.find(each => each.id === id) ?? null,
    [playReady.method]: () => ({ id: 0, session: roleSession(1) }),
    [liveReady.method]: (choice: object): LiveSnapshot => {
      const run = runAt(12, 200);
      return { run, tags: ['Nim'], choice, episode: watchedGame() };
    },
  };
  return {
    answer(method, params) {
      const answer = answers[method];
      if (!answer) throw new Error(`preview: no answer to ${method}`);
      return answer(params as never);
    },
  };
}
