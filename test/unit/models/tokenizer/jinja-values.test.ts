// Values in chat templates against transformers' template engine (test/golden/make/jinja_values.py): printing,
// comparison, filters.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { distinct } from '../../../../extension/models/tokenizer/jinja-values';
import { ChatTemplate } from '../../../../extension/models/tokenizer/chat-template';
import type { ChatMessage } from '../../../../extension/models/tokenizer/chat-template';

const { messages, rendered } = JSON.parse(readFileSync('test/golden/chat/jinja-values.json', 'utf8')) as {
  messages: ChatMessage[];
  rendered: [template: string, text: string][];
};
/** Expressions that @huggingface/jinja cannot compute are refused, never rendered differently. */
const refused = ["{{ 'ab' * 2 }}", '{{ true + 1 }}'];

const render = (template: string): string =>
  new ChatTemplate(template, 'a-model', { bos_token: '<s>' }).render(messages, true);

it('prints and compares values as Python does', () => {
  expect(rendered.length).toBeGreaterThan(1600);
  const wrong = rendered.flatMap(([template, text]) => {
    if (refused.includes(template)) return [];
    try {
      const ours = render(template);
      return ours === text ? [] : [{ template, ours, text }];
    } catch (error) {
      return [{ template, ours: (error as Error).message, text }];
    }
  });
  expect(wrong).toEqual([]);
});

it.each(refused)('refuses %s, which it cannot compute', template => {
  expect(() => render(template)).toThrow(/the chat template cannot be rendered/);
});

it('refuses expressions that it would render differently', () => {
  expect(() => render("{{ messages | join(', ', attribute='role') }}")).toThrow(
    /join with an attribute is not supported/,
  );
  expect(() => render('{{ raise_exception }}')).toThrow(/cannot be written as text/);
});

// Expected values: Jinja 3.1.6.
it.each([
  ["[1, true, 1.0, 0, -0.0, false, 'a', 'A', 'a', none, none]", '', "[1, 0, 'a', None]"],
  ["['a', 'A', 'a']", '(case_sensitive=true)', "['a', 'A']"],
  ["['a', 'A', 'a']", '(true)', "['a', 'A']"],
  ["[(1, 'a'), (1.0, 'a'), (true, 'A'), '1', 1]", '', "[(1, 'a'), (True, 'A'), '1', 1]"],
  ['[]', '', '[]'],
])('%s | unique%s keeps the first of the items that are equal in Python', (list, args, expected) => {
  expect(render(`{{ ${list} | unique${args} | list }}`)).toBe(expected);
});

it('refuses unique on items that are unhashable in Python', () => {
  expect(() => render('{{ [[1], [1]] | unique | list }}')).toThrow("unhashable type: 'list'");
  expect(() => render('{{ messages | unique | list }}')).toThrow("unhashable type: 'dict'");
  expect(() => render("{{ ['a'] | unique(attribute='x') | list }}")).toThrow(
    'unique with an attribute is not supported',
  );
});

it('unique examines each of 100,000 items a few times, equal ones or not', () => {
  const count = 100_000;
  for (const kinds of [count, 2]) {
    let looks = 0;
    const items = Array.from({ length: count }, (_, i) => {
      const content = i % 2 === 0 ? i % kinds : `t${i % kinds}`;
      return {
        type: i % 2 === 0 ? 'IntegerValue' : 'StringValue',
        get value() {
          looks++;
          return content;
        },
      };
    });
    expect(distinct(items, false)).toHaveLength(kinds);
    expect(looks).toBeLessThan(10 * count);
  }
});

it('evaluates each operand once, however deeply nested', () => {
  const nested = `messages${'[0:]'.repeat(40)}[0]['role']`;
  expect(render(`{{ ${nested} }}{{ ${'not '.repeat(60)}(1 in [2]) }}{{ 'a'${' | string | trim'.repeat(40)} }}`)).toBe(
    'userFalsea',
  );
});
