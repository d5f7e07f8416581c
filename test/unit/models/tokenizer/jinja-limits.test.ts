// Templates that run or write without bound are refused with a sentence; those of long conversations are not.
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { ChatTemplate } from '../../../../extension/models/tokenizer/chat-template';
import type { ChatMessage } from '../../../../extension/models/tokenizer/chat-template';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';

const render = (source: string): string =>
  new ChatTemplate(source, 'a-model', {}).render([{ role: 'user', content: 'Go.' }], true);
const digits = '0123456789';

describe('a template beyond the limits', () => {
  it.each([
    [
      'a loop of loops',
      '{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}x{% endfor %}',
      /too many steps|too much/,
    ],
    ['a long range', '{% for a in range(1000000000) %}x{% endfor %}', /more than 10000 numbers/],
    [
      'a text that doubles',
      `{% set n = namespace(x='ab') %}{% for a in range(40) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}`,
      /produces too much text/,
    ],
    [
      'a list that doubles',
      `{% set n = namespace(x=[1, 2]) %}{% for a in range(40) %}{% set n.x = n.x + n.x %}{% endfor %}`,
      /produces too much text/,
    ],
    ['a macro that calls itself', '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}', /cannot be rendered/],
    ['an indent without end', `{{ '${digits}' | indent(300000000, true) }}`, /cannot be rendered/],
    ['JSON with an indent without end', '{{ messages | tojson(indent=300000000) }}', /cannot be rendered/],
  ])('is refused: %s', (_, source, why) => {
    const from = process.cpuUsage();
    expect(() => render(source)).toThrow(UserError);
    expect(() => render(source)).toThrow(why);
    expect(process.cpuUsage(from).user / 1000).toBeLessThan(1500);
  });
});

it("bounded templates keep Jinja's globals, spelled as in Python", () => {
  expect(
    render('{{ range(3) | list }}{{ range(1, 7, 2) | list }}{{ range(3, 0, -2) | list }}{{ range(0) | list }}'),
  ).toBe('[0, 1, 2][1, 3, 5][3, 1][]');
  expect(render('{{ true and True }} {{ none }} {{ None is none }} {{ False }}')).toBe('True None True False');
  expect(() => render('{{ range(1, 2, 0) }}')).toThrow(/must not be zero/);
  expect(() => render("{{ raise_exception('no roles') }}")).toThrow(/no roles/);
});

it.each(['llama3', 'qwen2.5', 'qwen3'])('the template of %s renders a long conversation', name => {
  const tokenizer = readTokenizer(`test/golden/chat/${name}`);
  const messages = Array.from({ length: 401 }, (_, i): ChatMessage => {
    return { role: i % 2 === 0 ? 'user' : 'assistant', content: `${'state '.repeat(500)}${i}` };
  });
  expect(tokenizer.render(messages, true)).toContain('state 400');
});
