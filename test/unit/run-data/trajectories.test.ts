// Data sets of episodes: OpenAI messages, SFT, preference pairs, and ATIF trajectories of a stored real run.
import { describe, expect, it } from 'vitest';
import { episodeSchema, type Episode } from '../../../extension/run-data/episode';
import { manifestSchema } from '../../../extension/run-data/run-manifest';
import { atifTrajectory } from '../../../extension/run-data/trajectories/atif';
import { messagesLine, pairedEpisodes, sftLine } from '../../../extension/run-data/trajectories/chat-lines';
import { roleEpisodes } from '../../../extension/run-data/trajectories/role-episodes';
import { storedFiles } from '../../e2e/fixtures/stored-run.mjs';

const files = storedFiles('lake-run');
const manifest = manifestSchema.parse(JSON.parse(files['manifest.json']));
const episodes = Object.entries(files)
  .filter(([name]) => name.startsWith('episodes/step-'))
  .flatMap(([, text]) => text.split('\n').filter(line => line !== ''))
  .map(line => episodeSchema.parse(JSON.parse(line)));
const long = episodes.find(({ turns }) => turns.length > 1)!;

/** An episode of group 0 whose answers are `answers`; states follow from the answers. */
function played(member: number, score: number, answers: readonly string[], changed: Partial<Episode> = {}): Episode {
  const chat = answers.flatMap((content, i) => [
    { role: 'assistant', content },
    ...(i < answers.length - 1 ? [{ role: 'user', content: `state after ${content}` }] : []),
  ]);
  const messages = [{ role: 'system', content: 'task' }, { role: 'user', content: 'first state' }, ...chat];
  const turns = answers.map(raw => ({ ...long.turns[0], raw }));
  return { ...long, id: `m${member}`, group_id: 0, member, score, messages, turns, ...changed };
}

describe('chats', () => {
  it('are the chats that the model saw, with the facts of the episode', () => {
    const { messages, metadata } = messagesLine(manifest, long);
    expect(messages.map(({ role }) => role).slice(0, 3)).toEqual(['system', 'user', 'assistant']);
    expect(messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)).toEqual(
      long.turns.map(({ raw }) => raw),
    );
    expect(metadata).toMatchObject({ run: manifest.id, episode: long.id, score: long.score, seed: long.seed });
    expect(Object.keys(sftLine(long))).toEqual(['messages']);
  });
});

describe('preference pairs', () => {
  it('put the highest score of a prompt group against the lowest, from the first difference on', () => {
    const { pairs, skipped } = pairedEpisodes([
      played(0, 0.5, ['a', 'b']),
      played(1, 1, ['a', 'c']),
      played(2, 0, ['a', 'd', 'e']),
    ]);
    expect(skipped).toEqual({ equalScores: 0, single: 0, otherPrompts: 0 });
    expect(pairs.map(({ best, worst }) => [best.id, worst.id])).toEqual([['m1', 'm2']]);
    const [{ pair }] = pairs;
    expect(pair.prompt.map(({ content }) => content)).toEqual(['task', 'first state', 'a', 'state after a']);
    expect(pair.chosen.map(({ content }) => content)).toEqual(['c']);
    expect(pair.rejected.map(({ content }) => content)).toEqual(['d', 'state after d', 'e']);
  });

  it('prefer fewer turns, then the lower member, among equal scores', () => {
    const ids = (...group: Episode[]) => pairedEpisodes(group).pairs.map(({ best, worst }) => [best.id, worst.id]);
    expect(ids(played(0, 1, ['a', 'b']), played(1, 1, ['c']), played(2, 0, ['d']))).toEqual([['m1', 'm2']]);
    expect(ids(played(3, 1, ['a']), played(1, 1, ['c']), played(2, 0, ['d']))).toEqual([['m1', 'm2']]);
  });

  it('need two episodes, different scores and the same prompt', () => {
    const other = { messages: [{ role: 'user', content: 'another state' }, ...played(0, 0, ['a']).messages.slice(2)] };
    const { pairs, skipped } = pairedEpisodes([
      played(0, 1, ['a'], { group_id: 1 }),
      played(0, 1, ['a'], { group_id: 2 }),
      played(1, 1, ['b'], { group_id: 2 }),
      played(0, 1, ['a'], { group_id: 3 }),
      played(1, 0, ['b'], { group_id: 3, ...other }),
      played(0, 1, ['same'], { group_id: 4 }),
      played(1, 0, ['same'], { group_id: 4 }),
    ]);
    expect(pairs).toEqual([]);
    expect(skipped).toEqual({ equalScores: 1, single: 1, otherPrompts: 2 });
  });

  it('end with an answer in a real run', () => {
    const { pairs } = pairedEpisodes(episodes);
    expect(pairs.length).toBeGreaterThan(3);
    for (const { pair, best, worst } of pairs) {
      expect(best.score).toBeGreaterThan(worst.score);
      for (const side of [pair.chosen, pair.rejected]) {
        expect(side[0].role).toBe('assistant');
        expect(side.at(-1)!.role).toBe('assistant');
      }
    }
  });
});

describe('ATIF', () => {
  const { steps, ...about } = atifTrajectory(manifest, long);

  it('names version, session and agent', () => {
    expect(about).toMatchObject({
      schema_version: 'ATIF-v1.4',
      session_id: `${manifest.id}/${long.id}`,
      agent: { name: 'ragen-workbench', model_name: 'ragen-tiny' },
      final_metrics: { total_steps: steps.length, extra: { score: long.score } },
    });
  });

  it('has a step for the system message, for the first state and for each turn, numbered from 1', () => {
    expect(steps.map(({ step_id }) => step_id)).toEqual(steps.map((_, i) => i + 1));
    expect(steps.map(({ source }) => source)).toEqual(['system', 'user', ...long.turns.map(() => 'agent')]);
    expect(steps.slice(2).map(({ message }) => message)).toEqual(long.turns.map(({ raw }) => raw));
  });

  it('has the next state as the observation of a turn, and token ids with as many log-probs', () => {
    const [first] = steps.slice(2);
    const seen = long.messages[3].content;
    expect(first.observation?.results[0].content).toBe(seen);
    expect(steps.at(-1)?.observation?.results[0].content).toContain(long.final_state.trim().slice(0, 10));
    const [from, to] = long.turns[0].span;
    const metrics = first.metrics as Record<string, number[]>;
    expect(metrics.completion_token_ids).toEqual(long.tokens.ids.slice(from, to));
    expect(metrics.logprobs).toEqual(long.tokens.logprobs.slice(from, to));
    expect(metrics.prompt_tokens).toBe(from);
  });

  it('has no tokens for a model behind an API', () => {
    const tokens = { ids: [], mask: [], logprobs: [] };
    const api = { ...long, tokens, turns: long.turns.map(turn => ({ ...turn, span: [0, 0] as [number, number] })) };
    const found = atifTrajectory(manifest, api);
    expect(found.final_metrics).not.toHaveProperty('total_completion_tokens');
    expect(found.steps.at(-1)?.metrics).not.toHaveProperty('completion_token_ids');
  });
});

describe('episodes with roles', () => {
  const [template] = long.turns;
  /** A game in which white answers twice and black once; each answer is one token in the sample of its role. */
  const game = (member: number, white: number, answer: string): Episode => {
    const say = (name: string, role: string, content: string) => ({ role, content, name });
    const own = { turns: 1, penalty: 0, success: false };
    const turn = (number: number, role: string, at: number, raw: string) => ({
      ...template,
      ...{ turn: number, role, raw, state: `state ${number}`, span: [at, at + 1] as [number, number] },
    });
    return {
      ...long,
      ...{ id: `m${member}`, member, group_id: 0, score: 0, reward: 0, final_state: 'mate' },
      roles: {
        white: { ...own, turns: 2, reward: white, score: white, success: white > 0 },
        black: { ...own, reward: -white, score: -white },
      },
      messages: [
        ...[say('white', 'system', 'play white'), say('white', 'user', 'state 1'), say('white', 'assistant', answer)],
        ...[say('black', 'system', 'play black'), say('black', 'user', 'state 2'), say('black', 'assistant', 'b')],
        ...[say('white', 'user', 'state 3'), say('white', 'assistant', 'c')],
      ],
      turns: [turn(1, 'white', 1, answer), turn(2, 'black', 6, 'b'), turn(3, 'white', 3, 'c')],
      tokens: {
        ids: [10, 11, 12, 13, 14, 20, 21],
        mask: [0, 1, 0, 1, 0, 0, 1],
        logprobs: [null, -1, null, -2, null, null, -3],
        starts: [0, 5],
      },
    };
  };
  const [white, black] = roleEpisodes(game(0, 1, 'a'));

  it('are one chat per role, with the return of the role and no word of the other', () => {
    const { messages, metadata } = messagesLine(manifest, white);
    expect(messages.map(({ content }) => content)).toEqual(['play white', 'state 1', 'a', 'state 3', 'c']);
    expect(metadata).toMatchObject({ episode: 'm0', role: 'white', score: 1, success: true });
    expect(sftLine(black)).toEqual({
      messages: [
        { role: 'system', content: 'play black' },
        { role: 'user', content: 'state 2' },
        { role: 'assistant', content: 'b' },
      ],
    });
    expect(roleEpisodes(long)).toEqual([long]);
  });

  it('give pairs of the same role', () => {
    const { pairs } = pairedEpisodes([game(0, 1, 'a'), game(1, -1, 'x')].flatMap(roleEpisodes));
    expect(pairs.map(({ best, worst, pair }) => [best.role, best.id, worst.id, pair.chosen[0].content])).toEqual([
      ['white', 'm0', 'm1', 'a'],
    ]);
  });

  it('give one trajectory per role, with the tokens of its samples', () => {
    const found = atifTrajectory(manifest, black);
    expect(found.session_id).toBe(`${manifest.id}/m0/black`);
    expect(found.steps.map(({ source, message }) => [source, message])).toEqual([
      ['system', 'play black'],
      ['user', 'state 2'],
      ['agent', 'b'],
    ]);
    expect(found.steps[2].metrics).toMatchObject({ prompt_tokens: 1, completion_token_ids: [21], logprobs: [-3] });
    expect(found.steps[2].observation).toBeUndefined(); // the state after the last turn of black is for white
    expect(atifTrajectory(manifest, white).steps.at(-1)!.observation).toEqual({ results: [{ content: 'mate' }] });
    expect([black.tokens.ids, black.turns[0].span, white.tokens.ids.length]).toEqual([[20, 21], [1, 2], 5]);
  });
});
