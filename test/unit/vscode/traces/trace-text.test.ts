import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { tokenBytes } from '../../../../extension/vscode/traces/tokens/token-bytes';
import { traceOf, type Trace } from '../../../../extension/vscode/traces/trace-text';
import type { Episode } from '../../../../extension/run-data/episode';
import { lakeEpisode, lakeTokenizer } from './lake-episode';

const bytes = tokenBytes(lakeTokenizer, 'tokenizer.json');
const text = (trace: Trace, { from, to }: { from: number; to: number }) => trace.text.slice(from, to);

describe('an episode’s document', () => {
  const episode = lakeEpisode();
  const trace = traceOf(episode, 'lake', bytes);

  it('consists of header, states, answers, outcomes and the end', () => {
    expect(trace.text).toBe(readFileSync(new URL('lake-episode.ragen-trace', import.meta.url), 'utf8'));
  });

  it('gives every sampled token a range with its text', () => {
    expect(trace.tokens.map(({ index }) => index)).toEqual(
      episode.tokens.mask.flatMap((bit, index) => (bit === 1 ? [index] : [])),
    );
    for (const token of trace.tokens)
      expect(text(trace, token)).toBe(Buffer.from(bytes.of(episode.tokens.ids[token.index])!).toString());
  });

  it('has the parts of each turn', () => {
    const [first, second] = trace.turns;
    expect(text(trace, first.prefix)).toBe('<think>');
    expect(text(trace, first.thought!)).toBe('go up');
    expect(text(trace, first.actions!)).toBe('Up || Fly');
    expect(text(trace, first.answer)).toBe('go up</think><answer>Up || Fly</answer><|im_end|>');
    expect(text(trace, first.heading)).toBe('## Turn 1 · reward 0');
    expect(first.refused).toMatchObject([{ name: 'Fly', reason: 'not an action of this environment' }]);
    expect(text(trace, first.refused[0])).toBe('Fly');
    expect(text(trace, second.rewardLine)).toBe('reward +1 · penalty −0.100 · return +1 · advantage +0.500');
    expect(text(trace, second.state)).toBe(episode.turns[1].state);
    expect(text(trace, trace.finalState)).toBe(episode.final_state);
  });

  it('names the roles of turns and of returns', () => {
    const [first, second] = episode.turns;
    const own = { turns: 1, penalty: 0, success: false };
    const system = (name: string) => ({ role: 'system', content: `play ${name}`, name });
    const game = {
      ...episode,
      messages: [system('white'), system('black')],
      roles: { white: { ...own, reward: 0, score: 0 }, black: { ...own, reward: 1, score: 1 } },
      turns: [
        { ...first, role: 'white' },
        { ...second, role: 'black' },
      ],
    };
    const traced = traceOf(game, 'lake', bytes);
    expect(text(traced, traced.header)).toContain(' · return of white 0 · return of black +1 · ');
    expect(text(traced, traced.prompt!)).toBe('\n## Prompt\n### white\nplay white\n### black\nplay black');
    expect(text(traced, traced.turns[1].heading)).toBe('## Turn 2 · black · reward +1');
    expect(text(traced, traced.turns[1].rewardLine)).toContain('return of black +1');
  });

  it('has the reward components of turns and of the episode', () => {
    const [first, second] = episode.turns;
    const scored = { ...second, components: { brevity: 0.5, tone: -1 }, component_reward: 0.25 };
    const judged = { model: 'gpt', score: 0.75, text: 'Clear.\nScore: 7.5', cached: false, tokens: 9, cost: 0 };
    const judgements = { style: [judged, { ...judged, model: 'other', score: null, text: 'no answer' }] };
    const whole = { components: { style: 0.75 }, component_reward: 1, judgements };
    const components = { ...episode, turns: [first, scored], ...whole };
    const traced = traceOf(components, 'lake', bytes);
    const lines = traced.text.split('\n');
    expect(lines[3]).toContain(' · penalty −0.100 · components +1 · advantage');
    expect(text(traced, traced.turns[0].outcomeSection)).not.toContain('components');
    expect(text(traced, traced.turns[1].outcomeSection)).toMatch(
      /\nreward \+1 · penalty −0\.100 · components \+0\.250 · return \+1 · advantage \+0\.500\ncomponents before weights: brevity \+0\.500 · tone −1$/,
    );
    expect(text(traced, traced.end)).toContain(
      '\ncomponents before weights: style +0.750\nstyle by gpt: +0.750 · Clear. Score: 7.5\nstyle by other: no score · no answer\n',
    );
    expect(text(traced, traced.finalState)).toBe(episode.final_state);
  });

  it('shows the recorded text, without tokens, when the ids decode to something else', () => {
    const other: Episode = { ...episode, turns: episode.turns.map(turn => ({ ...turn, raw: `${turn.raw}!` })) };
    const without = traceOf(other, 'lake', bytes);
    expect(without.tokens).toEqual([]);
    expect(without.unspelled).toEqual([1, 2]);
    expect(text(without, without.turns[0].answer)).toBe(`${episode.turns[0].raw}!`);
    expect(traceOf(episode, 'lake', null).unspelled).toEqual([1, 2]);
  });

  it('states its outcome', () => {
    const facts = (changes: Partial<Episode>) => traceOf({ ...episode, ...changes }, 'lake', bytes).text.split('\n')[3];
    const whatIf = { of: 'train-000018-g003-m01', turn: 2, given: {}, players: ['initial'], seed: 1, notes: [] };
    expect(facts({ kept: false })).toMatch(/ · dropped by a filter$/);
    expect(facts({ kept: null })).toMatch(/ · not trained on$/);
    expect(facts({ kept: null, what_if: whatIf })).toMatch(
      / · what-if of train-000018-g003-m01, from turn 2 on; not trained on$/,
    );
  });

  it('separates lines by \\n only, whatever was sampled', () => {
    const odd = lakeEpisode();
    odd.turns[0].state = 'a\r\nb\0c';
    expect(text(traceOf(odd, 'lake', bytes), traceOf(odd, 'lake', bytes).turns[0].state)).toBe('a␍\nb␀c');
  });
});
