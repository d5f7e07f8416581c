// Tool calls written by hand in a what-if: read as the answer of a turn shows them, written in the model's form, and
// parsed again as the same calls.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { callsOf } from '../../../../envs/api/tools/call-action';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { givenTokens } from '../../../../extension/trainer/inspection/given-answer';
import { givenCalls } from '../../../../extension/trainer/inspection/given-calls';
import { parseToolResponse } from '../../../../extension/trainer/rollout/tool-protocol';
import type { ToolDescription } from '../../../../extension/protocol/tool-link';

const names = ['lookup', 'lookup_all', 'close'];
const calls = fc.array(
  fc.record({
    name: fc.constantFrom(...names),
    arguments: fc
      .dictionary(fc.string(), fc.jsonValue())
      .map(value => JSON.parse(JSON.stringify(value)) as Record<string, unknown>),
  }),
  { minLength: 1, maxLength: 4 },
);
const shown = (list: readonly { name: string; arguments: object }[]): string =>
  list.map(({ name, arguments: args }) => `${name}(${JSON.stringify(args)})`).join('; ');

describe('a hand-written answer', () => {
  it('is read as the calls that a turn shows', () => {
    fc.assert(fc.property(calls, list => void expect(givenCalls(shown(list), names)).toEqual(list)));
  });

  it('is an answer unless it begins with a call of a tool', () => {
    for (const answer of ['17', '', 'lookup', 'the lookup({})', 'search({"a": 1})'])
      expect(givenCalls(answer, names), answer).toBeUndefined();
    expect(givenCalls(' close ({})\n', names)).toEqual([{ name: 'close', arguments: {} }]);
  });

  it.each([
    [
      'lookup("drum")',
      'the arguments of lookup are no JSON object in parentheses: write the call as lookup({"key": "value"})',
    ],
    ['lookup({"item": "drum"}', 'the arguments of lookup are no JSON object'],
    [
      'close({}); and then',
      '"and then" is no call of a tool: write calls such as lookup({"key": "value"}), separated by semicolons',
    ],
  ])('%s is refused in one sentence', (answer, message) => {
    expect(() => givenCalls(answer, names)).toThrow(message);
  });

  it('never throws anything but a sentence', () => {
    const text = fc.string().map(end => `lookup(${end}`);
    fc.assert(
      fc.property(text, answer => {
        try {
          givenCalls(answer, names);
        } catch (error) {
          expect((error as Error).message).toMatch(/^what-if: /);
        }
      }),
    );
  });
});

describe('the ids of hand-written calls', () => {
  const tokenizer = readTokenizer('media/models/ragen-tiny');
  const description: ToolDescription = { name: 'lookup', description: 'Looks up.', parameters: {} };
  const asked = '{"item": "drum"}';
  const call = { name: 'lookup', arguments: { item: 'drum' } };
  const said = 'I need the price. </think>';
  const recorded = { raw: `<think>${said}<answer>3</answer>`, ids: tokenizer.encode(`${said}<answer>3</answer>`) };

  it.each([
    { format: 'hermes' as const, native: true, thinks: true },
    { format: 'hermes' as const, native: false, thinks: false },
    { format: 'llama3' as const, native: true, thinks: false },
  ])('are the calls in the form of the model, after the kept thought: %o', ({ format, native, thinks }) => {
    const tools = { tools: [description], syntax: { calls: format, native } };
    const prefix = thinks ? '<think>' : '';
    const given = givenTokens(
      tokenizer,
      prefix,
      { answer: `lookup(${asked})` },
      thinks ? recorded : null,
      'answer',
      tools,
    );
    const raw = prefix + tokenizer.decode(given.ids);
    const read = parseToolResponse(raw, { enable_think: thinks }, tools);
    expect(callsOf(read.actions[0])).toEqual([call]);
    expect([given.complete, read.thought]).toEqual([true, thinks ? 'I need the price.' : null]);
    expect(given.kept > 0).toBe(thinks);
  });

  it('an answer without calls is written in its tags', () => {
    const tools = { tools: [description], syntax: { calls: 'hermes' as const, native: true } };
    const { ids } = givenTokens(tokenizer, '', { answer: '17' }, null, 'answer', tools);
    expect(tokenizer.decode(ids)).toBe('<answer>17</answer>');
  });
});
