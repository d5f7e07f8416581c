// Values in chat templates against transformers' template engine (test/golden/make/jinja_values.py): printed, compared, filtered.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ChatTemplate } from '../../../extension/trainer/models/chat-template';
import type { ChatMessage } from '../../../extension/trainer/models/chat-template';

const { messages, rendered } = JSON.parse(readFileSync('test/golden/chat/jinja-values.json', 'utf8')) as {
  messages: ChatMessage[];
  rendered: [template: string, text: string][];
};
/** What @huggingface/jinja cannot do is refused, never rendered differently. */
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

it('refuses what it would render differently', () => {
  expect(() => render("{{ messages | join(', ', attribute='role') }}")).toThrow(/join takes no attribute/);
  expect(() => render('{{ raise_exception }}')).toThrow(/cannot be written as text/);
});

it('evaluates each operand once, however deep it is nested', () => {
  const nested = `messages${'[0:]'.repeat(40)}[0]['role']`;
  expect(render(`{{ ${nested} }}{{ ${'not '.repeat(60)}(1 in [2]) }}{{ 'a'${' | string | trim'.repeat(40)} }}`)).toBe(
    'userFalsea',
  );
});
