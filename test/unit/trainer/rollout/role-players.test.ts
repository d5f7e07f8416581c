// Roles that models behind APIs play, against a local server with both protocols: what they see, what is trained, cache,
// budgets, retries, and failures, which end an episode with one sentence.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { EpisodeStep, LoadedEnvironment } from '../../../../extension/protocol/environment-link';
import { roleEpisodes } from '../../../../extension/run-data/trajectories/role-episodes';
import { apiModel, type ApiModel } from '../../../../extension/trainer/config/schema-evaluation';
import { rolePlayers } from '../../../../extension/trainer/config/schema-roles';
import type { EnvironmentPool } from '../../../../extension/environments/client/environment-pool';
import { AgentProxy } from '../../../../extension/trainer/rollout/agent-proxy';
import { episodeRecord } from '../../../../extension/trainer/rollout/episode-record';
import { returnsOf, roleScoresOf } from '../../../../extension/trainer/rollout/role-returns';
import { RolePlayers } from '../../../../extension/trainer/rollout/role-players';
import { isTrainable } from '../../../../extension/trainer/rollout/rollout-batch';
import { startPeer, type ApiPeer, type Mishap } from '../evaluation/api-peer';
import { characterTokenizer, corridor, corridorOptions, ScriptedGenerator } from './scripted-rollout';

let peer: ApiPeer;
let folder: string;
let warnings: string[];
const open: RolePlayers[] = [];
beforeEach(async () => {
  peer = await startPeer();
  peer.answer = () => ({ text: '<think>secret</think><answer>tea, please</answer>' });
  folder = mkdtempSync(join(tmpdir(), 'ragen-roles-'));
  warnings = [];
});
afterEach(async () => {
  for (const players of open.splice(0)) players.close();
  await peer.close();
  rmSync(folder, { recursive: true });
});

/** A waiter and a guest talk in turns, twice each; the waiter earns 1 at the end, and the guest 0.5 beside. */
const talk: LoadedEnvironment = {
  ...corridor,
  ...{ tag: 'Talk', name: 'talk', instruction: 'Talk.', legend: {} },
  roles: [{ name: 'waiter' }, { name: 'guest', instruction: 'You are a guest.' }],
};
delete talk.actions;

class TalkPool implements EnvironmentPool {
  private readonly turns = new Map<string, number>();

  async reset(episodes: { episode: string; seed: number }[]) {
    return episodes.map(({ episode, seed }) => {
      this.turns.set(episode, 0);
      return { episode, observation: `A guest sits down at table ${seed % 2}.`, version: 'v1', role: 'waiter' };
    });
  }

  async step(episodes: { episode: string; actions: (number | string)[] }[]): Promise<EpisodeStep[]> {
    return episodes.map(({ episode, actions: [action] }) => {
      const turn = this.turns.get(episode)! + 1;
      this.turns.set(episode, turn);
      const over = turn === 4;
      const outcome = { action, reward: 0, terminated: over, truncated: false, info: { success: over } };
      return {
        ...{ episode, version: 'v1', observation: `${turn % 2 === 1 ? 'The waiter' : 'The guest'} says: ${action}` },
        outcomes: [{ ...outcome, ...(over && { roles: { waiter: { reward: 1 }, guest: { reward: 0.5 } } }) }],
        ...(!over && { role: turn % 2 === 1 ? 'guest' : 'waiter' }),
      };
    });
  }

  async closeEpisodes(episodes: string[]): Promise<void> {
    for (const episode of episodes) this.turns.delete(episode);
  }
}

const entry = (change: Partial<ApiModel> = {}): ApiModel =>
  apiModel.parse({
    ...{ provider_name: 'openai', model_name: 'm', base_url: `${peer.url}/v1`, max_retries: 2, timeout_s: 5 },
    ...change,
  });
const settings = (player: object) => rolePlayers.parse({ guest: { model: 'gpt', ...player } });
const customEnvs = (player: object) => ({
  Talk: { max_actions_per_traj: 8, max_tokens: 50, roles: settings(player) },
});

function playersOf(player: object = {}, environment: Record<string, string> = { OPENAI_API_KEY: peer.key }) {
  const models = {
    gpt: entry({ price_per_million: { input: 1000, output: 1000 } }),
    claude: entry({ provider_name: 'anthropic', base_url: peer.url }),
  };
  const players = RolePlayers.open({
    config: {
      custom_envs: customEnvs(player) as never,
      model_info: models,
      actor_rollout_ref: { rollout: { response_length: 77 } } as never,
    },
    ...{ tags: ['Talk', 'Talk'], file: join(folder, 'role-replies.jsonl'), environment },
    warn: message => warnings.push(message),
    pictures: { read: () => Promise.reject(new Error('there are no pictures')) },
    pauseMs: { first: 1, longest: 4 },
  })!;
  open.push(players);
  return players;
}

const script = (row: string, turn: number) => `plan ${row.slice(-10)}</think><answer>question ${turn}</answer>`;

/** Plays 2 groups × 2 episodes, each of at most 4 turns. */
async function play(
  players: RolePlayers,
  {
    step = 1,
    player = {},
    ...changes
  }: { step?: number; player?: object; mode?: 'full' | 'limited_multi_turn'; share?: number } = {},
) {
  const { mode = 'full', share = 1 } = changes;
  const options = corridorOptions();
  const groups = { env_groups: 2, group_size: 2, env_configs: { tags: ['Talk'], n_groups: [2] } };
  const generator = new ScriptedGenerator(script);
  const proxy = new AgentProxy(generator, new TalkPool(), characterTokenizer, {
    ...options,
    agent_proxy: { ...options.agent_proxy, max_turn: 6, context_window_mode: mode, max_context_window: 2 },
    es_manager: { ...options.es_manager, train: groups },
    custom_envs: customEnvs(player),
    max_failed_episodes_share: share,
    players,
  });
  const failures: string[] = [];
  const batch = await proxy.rollout({
    ...{ mode: 'train', step, environments: [talk] },
    onFailure: ({ failure }) => failures.push(`${failure.kind}: ${failure.message}`),
  });
  return { ...batch, failures, generator };
}

const mishap = (status: number): Mishap => ({ status, error: { message: 'told to fail' } });

describe('an episode', () => {
  test('has turns of the model behind the API, which sees its own context alone', async () => {
    const { episodes, generator } = await play(playersOf());
    expect(peer.requests).toHaveLength(8);
    const { messages } = peer.requests.at(-1)!.body as { messages: { role: string; content: string }[] };
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user']);
    expect(messages[0].content).toContain('You are a guest.');
    expect(messages[1].content).toContain('The waiter says: question 1');
    expect(messages[2].content).toBe('<think>secret</think><answer>tea, please</answer>');
    expect(JSON.stringify(messages)).not.toContain('plan');
    for (const { turns, messages: shown } of episodes) {
      expect(turns.map(({ role, answer }) => [role, answer])).toEqual([
        ['waiter', 'question 1'],
        ['guest', 'tea, please'],
        ['waiter', 'question 2'],
        ['guest', 'tea, please'],
      ]);
      const seen = shown.filter(({ name }) => name === 'waiter').map(({ content }) => content);
      expect(seen.join()).toContain('The guest says: tea, please');
      expect(seen.join()).not.toContain('secret');
    }
    expect(generator.live.size).toBe(0);
  });

  test('is trained in the turns of the policy alone, and compared by the roles of the policy', async () => {
    const { episodes, metrics } = await play(playersOf());
    for (const episode of episodes) {
      expect(episode.samples.map(({ role, turns }) => [role, turns.map(({ turn }) => turn)])).toEqual([
        ['waiter', [1, 3]],
      ]);
      expect(episode.roles).toEqual({
        waiter: { turns: 2, reward: 1, penalty: 0, score: 1, success: false },
        guest: { turns: 2, reward: 0.5, penalty: 0, score: 0.5, success: false, player: 'gpt' },
      });
      const record = episodeRecord(episode);
      expect(record.turns.map(({ span: [from, to] }) => to > from)).toEqual([true, false, true, false]);
      const [waiter, guest] = roleEpisodes(record);
      expect(waiter.tokens.ids).toEqual(record.tokens.ids);
      expect([guest.tokens.ids, guest.turns.map(({ span }) => span)]).toEqual([
        [],
        [
          [0, 0],
          [0, 0],
        ],
      ]);
    }
    expect(returnsOf(episodes).map(({ role, score }) => [role, score])).toEqual(episodes.map(() => ['waiter', 1]));
    const scores = episodes.map(episode => roleScoresOf(episode, ({ roles }, role) => roles![role].score));
    expect(scores).toEqual(episodes.map(() => ({ waiter: 1 })));
    expect(metrics['Talk/roles/guest/turns']).toBe(2);
  });

  test('has no format penalty for the model, which is asked again after an answer without an action', async () => {
    const texts = ['no tags', '<think>a</think><answer>tea</answer>'];
    peer.answer = messages => ({ text: texts[Math.min(1, (messages.length - 1) / 2)] });
    const { episodes } = await play(playersOf());
    expect(episodes[0].turns.map(({ role, penalty }) => [role, penalty])).toEqual([
      ['waiter', 0],
      ['guest', 0],
      ['guest', 0],
      ['waiter', 0],
      ['guest', 0],
    ]);
    expect(episodes[0].penalty).toBe(0);
  });

  test('of a windowed mode sends the newest turns, by the protocol of Anthropic too', async () => {
    const environment = { ANTHROPIC_API_KEY: peer.key };
    const { episodes } = await play(playersOf({ model: 'claude' }, environment), {
      mode: 'limited_multi_turn',
      player: { model: 'claude' },
    });
    expect(episodes.every(({ success }) => success)).toBe(true);
    const { body, path } = peer.requests.at(-1)!;
    expect([path, body.max_tokens, String(body.system).includes('You are a guest.')]).toEqual([
      '/v1/messages',
      77,
      true,
    ]);
    expect(episodes[0].samples.map(({ role, turns }) => [role, turns[0].turn])).toEqual([
      ['waiter', 1],
      ['waiter', 3],
    ]);
  });
});

describe('replies', () => {
  test('are stored with their cost, and a repeated step sends nothing', async () => {
    const first = await play(playersOf());
    expect(peer.requests).toHaveLength(8);
    open.splice(0).forEach(players => players.close());
    const again = await play(playersOf());
    expect(peer.requests).toHaveLength(8);
    const facts = ({ episodes }: typeof first) =>
      episodes.map(({ turns, roles, messages }) => [turns, roles, messages]);
    expect(facts(again)).toEqual(facts(first));
    await play(playersOf(), { step: 2 });
    expect(peer.requests).toHaveLength(16); // episodes of another step have replies of their own
    const lines = readFileSync(join(folder, 'role-replies.jsonl'), 'utf8').trim().split('\n');
    const { account, model, tokens, cost } = JSON.parse(lines[0]) as Record<string, number>;
    expect([lines.length, account, model, cost]).toEqual([16, 'Talk/guest', 'gpt', tokens / 1000]);
  });

  test('are shared by equal conversations if configured', async () => {
    const player = { share_replies: true };
    await play(playersOf(player), { player });
    expect(peer.requests).toHaveLength(2); // two turns; the guest does not see the table
  });

  test('come from at most max_concurrency requests at a time, after retries', async () => {
    peer.mishaps = [mishap(500), null, mishap(503)];
    peer.delayMs = 2;
    const player = { max_concurrency: 2 };
    const { episodes, failures } = await play(playersOf(player), { player });
    expect(failures).toEqual([]);
    expect(episodes.every(({ success }) => success)).toBe(true);
    expect([peer.requests.length, peer.mostOpen]).toEqual([10, 2]);
  });
});

describe('a failure', () => {
  test('of the service ends the episode with one sentence, and the others continue', async () => {
    peer.answer = messages =>
      peer.answered.length === 2 ? { text: 'x', finish: 'length' } : { text: `<answer>${messages.length}</answer>` };
    const { episodes, failures, metrics } = await play(playersOf());
    const failed = episodes.filter(({ error }) => error);
    expect(failed).toHaveLength(1);
    expect(failures).toEqual([
      'player: model gpt did not play the role guest of Talk in turn 2: the reply was cut at the token limit: raise the limit in generation_kwargs',
    ]);
    expect([failed[0].truncated, failed[0].success, isTrainable(failed[0])]).toEqual([true, false, false]);
    expect(metrics.env_error_rate).toBe(0.25);
    expect(warnings).toEqual([]);
  });

  test('after all retries names them; a used-up budget and a refusing service send nothing more', async () => {
    peer.mishaps = Array.from({ length: 12 }, () => mishap(500));
    const down = await play(playersOf());
    expect(down.failures[0]).toMatch(
      /^player: model gpt did not play .*: api: http.* gave no usable response in 3 tries \(500 told to fail\): the episode ends$/,
    );
    peer.mishaps = [];
    peer.requests.length = 0;
    const player = { max_requests: 3, max_concurrency: 1 };
    const spent = await play(playersOf(player), { player, step: 2 });
    expect(spent.failures.every(text => text.endsWith('max_requests 3 is used up'))).toBe(true);
    expect(peer.requests.length).toBe(3);
    peer.mishaps = [mishap(401)];
    const players = playersOf({ max_concurrency: 1 });
    const refused = await play(players, { step: 3 });
    expect([peer.requests.length, refused.failures.length]).toEqual([4, 4]);
    expect((await play(players, { step: 4 })).failures).toEqual([]); // the next rollout asks again
  });

  test('counts in max_failed_episodes_share', async () => {
    peer.mishaps = Array.from({ length: 12 }, () => mishap(500));
    await expect(play(playersOf(), { share: 0.5 })).rejects.toThrow(
      /the episode ends \(\d of 4 episodes failed; workbench\.max_failed_episodes_share is 0\.5\)$/,
    );
  });

  test('of the configuration is refused: a missing key', () => {
    expect(() => playersOf({}, {})).toThrow('model_info.gpt needs an API key of openai: set the environment variable');
  });
});
