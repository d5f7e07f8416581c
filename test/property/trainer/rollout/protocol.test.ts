// Properties of the turn protocol and the context for any model output: no error is thrown, and no token is lost or
// duplicated.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EpisodeContext } from '../../../../extension/trainer/rollout/context-manager';
import { pythonFloat } from '../../../../extension/trainer/rollout/python-float';
import { parseResponse } from '../../../../extension/trainer/rollout/turn-protocol';
import {
  asked,
  characterTokenizer,
  encodeText,
  openContext,
  past,
  turnEnd,
} from '../../../unit/trainer/rollout/scripted-rollout';

/**
 * Plays turns until a turn does not fit. Returns, for each turn, the engine's row when the answer begins, and the
 * sampled tokens.
 */
function playTurns(context: EpisodeContext, played: { state: string; answer: string; stopped: boolean }[]) {
  const history: Parameters<EpisodeContext['prompt']>[1][number][] = [];
  const seen: { context: number[]; sampled: number[] }[] = [];
  let row: number[] = [];
  for (const [index, { state, answer, stopped }] of played.entries()) {
    const prompt = context.prompt(asked(index + 1, state), history);
    if (!prompt) break;
    row = prompt.fresh ? prompt.append : [...row, ...prompt.append];
    const sampled = [...encodeText(answer), ...(stopped ? [turnEnd] : [])];
    seen.push({ context: row, sampled });
    row = [...row, ...sampled];
    const raw = context.accept({ ids: sampled, logprobs: sampled.map(() => -1) });
    history.push({ ...past(index + 1, raw), state });
  }
  return seen;
}

const protocol = { enable_think: true, action_sep: '||', max_actions_per_turn: 3 };
const piece = fc.oneof(
  fc.constantFrom('<think>', '</think>', '<answer>', '</answer>', '||', ' ', '\n', '<|im_end|>', 'Up'),
  fc.string({ maxLength: 6 }),
);
const reply = fc.array(piece, { maxLength: 14 }).map(pieces => pieces.join(''));

describe('parse', () => {
  it('is idempotent: the canonical form parses to itself', () => {
    fc.assert(
      fc.property(reply, text => {
        const first = parseResponse(`<think>${text}`, protocol);
        const again = parseResponse(first.llm_response, protocol);
        expect(again.actions).toEqual(first.actions);
        if (first.answer !== null) expect(again.llm_response).toBe(first.llm_response);
      }),
      { numRuns: 500 },
    );
  });

  it('returns at most the allowed actions, trimmed, non-empty and without separators', () => {
    fc.assert(
      fc.property(reply, text => {
        const { actions } = parseResponse(`<think>${text}`, protocol);
        expect(actions.length).toBeLessThanOrEqual(3);
        for (const action of actions) {
          expect(action).toBe(action.trim());
          expect(action).not.toBe('');
          expect(action).not.toContain('||');
        }
      }),
      { numRuns: 500 },
    );
  });

  it('returns any well-formed answer unchanged', () => {
    const word = fc.stringMatching(/^[A-Za-z0-9+*() ]{1,8}$/).filter(text => text.trim() !== '');
    fc.assert(
      fc.property(word, fc.array(word, { minLength: 1, maxLength: 3 }), (thought, actions) => {
        const raw = `<think>${thought}</think> <answer>${actions.join(' || ')}</answer>`;
        expect(parseResponse(raw, protocol)).toMatchObject({
          thought: thought.trim(),
          actions: actions.map(action => action.trim()),
        });
      }),
    );
  });
});

describe('Python floats', () => {
  it('read back as the same number', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), value => {
        const text = pythonFloat(value);
        expect(Object.is(Number(text), value)).toBe(true);
        expect(text).toMatch(/^-?\d+(\.\d+|(\.\d+)?e[+-]\d{2,3})$/);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('conversation context', () => {
  const turn = fc.record({
    state: fc.string({ maxLength: 30 }),
    answer: fc.string({ maxLength: 20 }),
    stopped: fc.boolean(),
  });
  const turns = fc.array(turn, { minLength: 1, maxLength: 6 });
  const mode = fc.constantFrom('full', 'limited_multi_turn', 'single_turn');

  it("equals the template's output for the full chat", () => {
    fc.assert(
      fc.property(turns, played => {
        const context = openContext({ max_model_len: 1e6 });
        playTurns(context, played);
        const [{ ids, turns: spans }] = context.samples();
        expect([...ids.slice(0, spans.at(-1)!.span[0])]).toEqual(
          characterTokenizer.encodePrompt(context.messages.slice(0, -1), '<think>'),
        );
      }),
    );
  });

  it('fits the model’s length in any mode, and trains on each sampled token exactly once and on no other token', () => {
    fc.assert(
      fc.property(
        turns,
        mode,
        fc.integer({ min: -1, max: 4 }).filter(k => k !== 0),
        fc.integer({ min: 230, max: 900 }),
        (played, context_window_mode, max_context_window, max_model_len) => {
          const context = openContext({ context_window_mode, max_context_window, max_model_len, response_length: 25 });
          const seen = playTurns(context, played);
          const samples = context.samples();
          const trained = samples.flatMap(({ turns }) => turns.map(({ turn }) => turn));
          expect(trained).toEqual(seen.map((_, index) => index + 1));
          for (const { ids, mask, logprobs, turns } of samples) {
            expect(ids.length).toBeLessThanOrEqual(max_model_len);
            expect([mask.length, logprobs.length]).toEqual([ids.length, ids.length]);
            for (const { turn, span } of turns) {
              expect([...ids.slice(...span)]).toEqual(seen[turn - 1].sampled);
              expect([...ids.slice(0, span[0])]).toEqual(seen[turn - 1].context);
            }
            const inside = (token: number) => turns.some(({ span: [from, to] }) => from <= token && token < to);
            expect([...mask]).toEqual(Array.from(ids, (_, token) => Number(inside(token))));
            expect([...logprobs]).toEqual(Array.from(ids, (_, token) => (inside(token) ? -1 : 0)));
          }
          if (context_window_mode !== 'full') expect(samples.length).toBe(seen.length);
          else if (!context.shortened) expect(samples.length).toBe(Math.min(seen.length, 1));
        },
      ),
      { numRuns: 200 },
    );
  });
});
