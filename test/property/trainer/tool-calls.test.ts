// The parser of tool calls on arbitrary texts and on calls that it has to read back. It never throws, takes linear time,
// and every call that it cannot read has a problem of one sentence.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { callAction, callsOf, isReadable, type ToolCall } from '../../../envs/api/tools/call-action';
import { parseCalls, writtenCalls } from '../../../extension/trainer/rollout/tool-calls';
import type { ToolSyntax } from '../../../extension/models/tokenizer/tool-syntax';

const args = fc.dictionary(
  fc.string({ minLength: 1 }).filter(key => key !== '__proto__'),
  fc.jsonValue({ maxDepth: 3 }),
  { noNullPrototype: true },
);
const name = fc.stringMatching(/^[A-Za-z_][\w-]{0,20}$/);
const call: fc.Arbitrary<ToolCall> = fc.record({ name, arguments: args }, { noNullPrototype: true });
const syntaxes: ToolSyntax[] = [
  { calls: 'hermes', native: true },
  { calls: 'hermes', native: false },
  { calls: 'llama3', native: true },
];
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** Calls whose texts hold no tag of their own; JSON does not escape `<`. */
const withoutTags = (calls: readonly ToolCall[]): boolean =>
  !/<\/?tool_call>|<\|python_tag\|>/.test(JSON.stringify(calls));

it.each(syntaxes)('reads back the calls that $calls writes (native: $native)', syntax => {
  fc.assert(
    fc.property(fc.array(call, { minLength: 1, maxLength: 4 }).filter(withoutTags), calls => {
      const { calls: found, content } = parseCalls(writtenCalls(calls, syntax), syntax.calls);
      expect(found).toEqual(plain(calls));
      expect(content).toBe('');
      expect(callsOf(callAction(found))).toEqual(plain(calls));
    }),
  );
});

const piece = fc.oneof(
  fc.string(),
  fc.constantFrom(
    '<tool_call>',
    '</tool_call>',
    '<|python_tag|>',
    '{',
    '}',
    '"',
    '\\',
    ';',
    '"name":',
    'f.call(',
    '")',
    'a="',
  ),
  call.map(written => JSON.stringify(written)),
);

it.each(['hermes', 'llama3'] as const)('%s: never throws, and every unreadable call has one sentence', format => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), pieces => {
      const text = pieces.join('');
      const { calls } = parseCalls(text, format, ['python']);
      for (const each of calls)
        if (isReadable(each)) expect(each.name).not.toBe('');
        else expect(each.problem).toMatch(/^[^\n]+[^.\n]$/);
      if (calls.length > 0) expect(callsOf(callAction(calls))).toEqual(plain(calls));
      const markers = text.split('<tool_call>').length - 1;
      if (format === 'hermes') expect(calls).toHaveLength(markers);
    }),
  );
});

it.each(['hermes', 'llama3'] as const)('%s: reads a megabyte of openings', format => {
  for (const part of ['<tool_call>', '{"name": "f"', '{', '<|python_tag|>', 'a.call(a=', '"'])
    expect(parseCalls(part.repeat(1e6 / part.length), format).calls.length).toBeLessThanOrEqual(1e6);
  expect(parseCalls(`{"name": ${'{'.repeat(1e6)}`, format).calls.length).toBeLessThanOrEqual(1);
});
