// The chat template: where a model folder stores it, its variables and its fixed date; and the ids that end a sequence.
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { ChatTemplate } from '../../../../extension/models/tokenizer/chat-template';
import type { ChatMessage, ChatTemplateOptions } from '../../../../extension/models/tokenizer/chat-template';
import { readEosTokenIds, readTokenizer } from '../../../../extension/models/weights/model-folder';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
const asked: ChatMessage[] = [{ role: 'user', content: 'Go.' }];
const render = (source: string, options?: ChatTemplateOptions, config = {}): string =>
  new ChatTemplate(source, 'a-model', config, options).render(asked, true);
const write = (name: string, content: unknown): void => writeFileSync(join(folder(), name), JSON.stringify(content));

describe('the date of a template', () => {
  it('is a fixed date, in English, in the format of Python’s strftime', () => {
    expect(render('{{ strftime_now("%d %b %Y") }}')).toBe('26 Jul 2024');
    expect(render('{{ strftime_now("%A, %-d %B %Y, %Y-%m-%d %H:%M:%S %%") }}', { today: '2030-09-01' })).toBe(
      'Sunday, 1 September 2030, 2030-09-01 00:00:00 %',
    );
    expect(render('{{ strftime_now("%F %T %y %a %b %e %I%p") }}', { today: '2005-02-03' })).toBe(
      '2005-02-03 00:00:00 05 Thu Feb  3 12AM',
    );
  });

  it("gives Llama 3 its template's default date", () => {
    const llama = 'test/golden/chat/llama3';
    const withDate = readTokenizer(llama, { variables: { date_string: '03 Feb 2031' } }).render(asked, true);
    expect(withDate).toContain('Today Date: 03 Feb 2031\n');
    expect(readTokenizer(llama, { today: '2031-02-03' }).render(asked, true)).toBe(withDate);
    expect(readTokenizer(llama).render(asked, true)).toContain('Today Date: 26 Jul 2024\n');
  });

  it('is refused when it is invalid, and so is an unknown format code', () => {
    expect(() => render('x', { today: 'tomorrow' })).toThrow(
      /a-model: the date of the chat template is tomorrow: use the form/,
    );
    expect(() => render('{{ strftime_now("%Q") }}')).toThrow(/cannot be rendered \(strftime_now: %Q is not known\)/);
  });
});

describe('variables', () => {
  it('equal those of apply_chat_template', () => {
    const config = { bos_token: '<s>', eos_token: { content: '</s>', lstrip: false }, pad_token: null };
    expect(render('{{ bos_token + messages[0].content + eos_token }}', {}, config)).toBe('<s>Go.</s>');
    expect(render('{{ pad_token is defined }} {{ tools is none }} {{ documents is none }}', {}, config)).toBe(
      'False True True',
    );
    expect(render('{% if enable_thinking is defined and enable_thinking is false %}quick{% endif %}')).toBe('');
    const quick = { variables: { enable_thinking: false } };
    expect(render('{% if enable_thinking is defined and enable_thinking is false %}quick{% endif %}', quick)).toBe(
      'quick',
    );
  });
});

describe('methods of text', () => {
  it('strip as Python’s do', () => {
    expect(render(String.raw`{{ '\n a \n'.strip('\n') }}|{{ 'xyaxy'.lstrip('yx') }}|{{ 'xyaxy'.rstrip('yx') }}`)).toBe(
      ' a |axy|xya',
    );
    expect(render("{{ x.strip() }}|{{ x | trim }}|{{ x | trim('.') }}", { variables: { x: '\x1f\ufeff.\x85' } })).toBe(
      '\ufeff.|\ufeff.|\x1f\ufeff.\x85',
    );
    expect(render("{{ (' a' + ' b ' | trim + 'c ') | trim }}{{ nothing | trim }}")).toBe('abc');
  });

  it('are refused on values that are not text', () => {
    expect(() => render('{{ 7 .strip() }}')).toThrow(UserError);
  });
});

describe('a model folder', () => {
  const body = (text: string): string => `{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}${text}`;
  const rendered = (): string => readTokenizer(folder()).render(asked, true);

  it('provides its template in chat_template.jinja, tokenizer_config.json or chat_template.json, single or named default', () => {
    cpSync('test/golden/chat/qwen3/tokenizer.json', join(folder(), 'tokenizer.json'));
    write('chat_template.json', { chat_template: body('json') });
    expect(rendered()).toBe('Go.<|im_end|>json');
    const named = ['tool_use', 'default'].map(name => ({ name, template: body(name) }));
    write('chat_template.json', { chat_template: named });
    expect(rendered()).toBe('Go.<|im_end|>default');
    write('tokenizer_config.json', { chat_template: body('inline') });
    expect(rendered()).toBe('Go.<|im_end|>inline');
    write('tokenizer_config.json', { chat_template: named });
    expect(rendered()).toBe('Go.<|im_end|>default');
    writeFileSync(join(folder(), 'chat_template.jinja'), body('jinja'));
    expect(rendered()).toBe('Go.<|im_end|>jinja');
  });

  it.each([
    [
      [
        { name: 'rag', template: 'x' },
        { name: 'tool_use', template: 'y' },
      ],
      /chat_template is the templates rag, tool_use: write/,
    ],
    [7, /tokenizer_config\.json: chat_template is number: write a template as text, or a list with one named default/],
  ])('with chat_template %j is refused', (chat_template, sentence) => {
    cpSync('test/golden/chat/qwen3/tokenizer.json', join(folder(), 'tokenizer.json'));
    write('tokenizer_config.json', { chat_template });
    expect(() => readTokenizer(folder())).toThrow(UserError);
    expect(() => readTokenizer(folder())).toThrow(sentence);
  });

  it('takes the end of a sequence from config.json when generation_config.json lacks it', () => {
    write('config.json', { eos_token_id: [3, 4] });
    expect(readEosTokenIds(folder())).toEqual([3, 4]);
    write('generation_config.json', { temperature: 1 });
    expect(readEosTokenIds(folder())).toEqual([3, 4]);
    write('generation_config.json', { eos_token_id: null });
    expect(readEosTokenIds(folder())).toEqual([3, 4]);
    write('generation_config.json', { eos_token_id: 5 });
    expect(readEosTokenIds(folder())).toEqual([5]);
    rmSync(join(folder(), 'generation_config.json'));
    write('config.json', {});
    expect(readEosTokenIds(folder())).toEqual([]);
  });
});
