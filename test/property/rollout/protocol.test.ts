// Properties of the turn protocol and the context: whatever the model writes, nothing breaks and no token is lost or invented.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FullContext } from '../../../extension/trainer/rollout/context-manager';
import { pythonFloat } from '../../../extension/trainer/rollout/python-float';
import { parseResponse } from '../../../extension/trainer/rollout/turn-protocol';
import { characterTokenizer, encodeText, turnEnd } from '../../unit/rollout/scripted-rollout';

const protocol = { enable_think: true, action_sep: '||', max_actions_per_turn: 3 };
const piece = fc.oneof(
  fc.constantFrom('<think>', '</think>', '<answer>', '</answer>', '||', ' ', '\n', '<|im_end|>', 'Up'),
  fc.string({ maxLength: 6 }),
);
const reply = fc.array(piece, { maxLength: 14 }).map(pieces => pieces.join(''));

describe('parse', () => {
  it('is done once: the canonical form parses to itself', () => {
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

  it('gives at most the allowed actions, trimmed, none empty, none with a separator in it', () => {
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

  it('returns any well-formed answer unharmed', () => {
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

describe('context', () => {
  it('joins segments to what the template gives for the whole chat, and masks the sampled ids alone', () => {
    const turn = fc.record({
      user: fc.string({ maxLength: 20 }),
      answer: fc.string({ maxLength: 20 }),
      stopped: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 5 }), turns => {
        const options = { prefix: '<think>', max_model_len: 1e6, response_length: 100 };
        const context = new FullContext(characterTokenizer, options, 'system');
        const sampled: number[] = [];
        for (const { user, answer, stopped } of turns) {
          context.prompt(user);
          const ids = [...encodeText(answer), ...(stopped ? [turnEnd] : [])];
          context.accept({ ids, logprobs: ids.map(() => -1), finish: stopped ? 'stop' : 'length' });
          sampled.push(...ids);
        }
        expect(context.ids.filter((_, token) => context.mask[token])).toEqual(sampled);
        context.prompt('end');
        expect([...context.ids]).toEqual(characterTokenizer.encodePrompt(context.messages, '<think>'));
      }),
    );
  });
});
