// The chat tokenizer: ids equal those of the Python tokenizers library (test/golden/make/tokenizer.py); a conversation
// extended by sampled ids and continuations equals the template's text of the whole; and unusable templates are
// refused.
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { ChatTokenizer } from '../../../../extension/models/tokenizer/chat-tokenizer';
import type { ChatMessage } from '../../../../extension/models/tokenizer/chat-template';
import type { TokenizerFiles } from '../../../../extension/models/tokenizer/chat-tokenizer';
import { chatMl } from '../../../golden/tokenizer/fixture';

const read = (name: string): object => JSON.parse(readFileSync(`test/golden/tokenizer/${name}.json`, 'utf8')) as object;
const files = (tokenizer: string, changed: Partial<TokenizerFiles> = {}): TokenizerFiles => ({
  folder: 'a-model',
  tokenizer: read(tokenizer),
  tokenizerConfig: { eos_token: '<|im_end|>' },
  chatTemplate: chatMl,
  eosTokenIds: [],
  ...changed,
});

describe.each(['own', 'qwen'])('the tokenizer %s.json', name => {
  const golden = (read('ids') as Record<string, { text: string; ids: number[]; decoded: string; visible: string }[]>)[
    name
  ];
  const tokenizer = new ChatTokenizer(files(name));

  it('gives the ids of the Python library', () => {
    expect(golden.length).toBeGreaterThan(150);
    const wrong = golden.filter(({ text, ids }) => tokenizer.encode(text).join() !== ids.join());
    expect(wrong.map(({ text, ids }) => ({ text, ids, ours: tokenizer.encode(text) }))).toEqual([]);
  });

  it.each(['x', '7', '# _\n', '漢', '<|im_'])(
    'encodes a text of 2^18 characters made of %j, more than a call has arguments, and decodes it again',
    part => {
      const text = part.repeat(2 ** 18 / part.length);
      const ids = tokenizer.encodePrompt([{ role: 'user', content: text }], '<think>');
      expect(ids.length).toBeGreaterThan(2 ** 17);
      expect(tokenizer.decode(ids, { special: true }).includes(text)).toBe(true);
    },
  );

  it('decodes as the Python library does, with and without special tokens', () => {
    for (const { ids, decoded, visible } of golden) {
      expect(tokenizer.decode(ids, { special: true })).toBe(decoded);
      expect(tokenizer.decode(ids)).toBe(visible);
    }
  });
});

describe('a conversation', () => {
  const tokenizer = new ChatTokenizer(files('own'));
  const stop = tokenizer.stopTokenIds[0];
  const text = fc.oneof(
    fc.string({ maxLength: 12 }),
    fc.constantFrom(
      'State:\n######\n#_P__#\n',
      '<think>',
      ' x </think><answer>Right || Up</answer>',
      '',
      '\n',
      ' spaced ',
      '√',
    ),
  );
  const turn = fc.record({ user: text, answer: text, ended: fc.boolean() });
  const play = (
    system: string | undefined,
    turns: { user: string; answer: string; ended: boolean }[],
    prefix: string,
  ) => {
    const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }];
    let ids: number[] = [];
    turns.forEach(({ user, answer, ended }, i) => {
      messages.push({ role: 'user', content: user });
      if (i === 0) ids = tokenizer.encodePrompt(messages, prefix);
      else ids.push(...tokenizer.encodeContinuation(turns[i - 1].ended ? [stop] : [], user, prefix));
      ids.push(...tokenizer.encode(answer), ...(ended ? [stop] : []));
      messages.push({ role: 'assistant', content: prefix + answer });
    });
    return { messages, ids };
  };

  it("extended by sampled ids and continuations equals the template's text of the whole", () => {
    const turns = fc.array(turn, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(
        fc.option(text, { nil: undefined }),
        turns,
        fc.constantFrom('', '<think>'),
        (system, turns, prefix) => {
          const { messages, ids } = play(system, turns, prefix);
          const whole = tokenizer.render(messages, false);
          // What the template writes after the last answer is added with the next continuation.
          const rest = turns.at(-1)!.ended ? '\n' : '<|im_end|>\n';
          expect(tokenizer.decode(ids, { special: true }) + rest).toBe(whole);
        },
      ),
    );
  });

  it('has the same ids for the same text, and a single stop token after an answer that ended with it', () => {
    const asked = [{ role: 'user', content: 'Go.' }] as const;
    expect(tokenizer.encodePrompt(asked, '<think>')).toEqual(tokenizer.encodePrompt(asked, '<think>'));
    const [cut, ended] = [[], [stop]].map(answer => tokenizer.encodeContinuation(answer, 'Again.', ''));
    expect(cut).toEqual([stop, ...ended]);
    expect(tokenizer.decode(cut, { special: true })).toBe(
      '<|im_end|>\n<|im_start|>user\nAgain.<|im_end|>\n<|im_start|>assistant\n',
    );
  });

  it('returns ids that the caller may modify', () => {
    tokenizer.encode('Right || Up').fill(0);
    expect(tokenizer.decode(tokenizer.encode('Right || Up'))).toBe('Right || Up');
  });

  it('ends at the template’s token and at the ids of generation_config.json', () => {
    expect(tokenizer.decode([stop], { special: true })).toBe('<|im_end|>');
    expect(new ChatTokenizer(files('own', { eosTokenIds: [stop, 7, 7] })).stopTokenIds).toEqual([stop, 7]);
  });

  it('handles more texts than its cache holds', () => {
    for (let i = 0; i < 5000; i++) tokenizer.encode(`x${i}`);
    expect(tokenizer.decode(tokenizer.encode('x1'))).toBe('x1');
  });
});

describe('a template', () => {
  const withTemplate = (chatTemplate: string | undefined) => new ChatTokenizer(files('own', { chatTemplate }));
  const message = "{{ message.role + ': ' + message.content }}";
  const loop = (body: string): string => `{% for message in messages %}${body}{% endfor %}`;

  it.each<[string, string | undefined, RegExp]>([
    ['that is missing', undefined, /a-model: the tokenizer has no chat template: add chat_template\.jinja or use/],
    [
      'that changes an answer',
      loop('{{ message.content | upper }}<|im_end|>'),
      /modifies the assistant's text: use a template/,
    ],
    [
      'that leaves answers out',
      loop("{% if message.role == 'user' %}{{ message.content }}{% endif %}"),
      /modifies the assistant's text/,
    ],
    ['that does not close a turn', loop(message), /writes nothing after a response: use a template that ends a turn/],
    [
      'that is not Jinja',
      '{% for message in %}',
      /a-model: the chat template cannot be parsed \(.+\): use a model whose/,
    ],
    [
      'that fails',
      "{{ raise_exception('no users') }}",
      /a-model: the chat template cannot be rendered \(.*no users\): use/,
    ],
  ])('%s is refused in a sentence', (_, template, sentence) => {
    expect(() => withTemplate(template)).toThrow(UserError);
    expect(() => withTemplate(template)).toThrow(sentence);
  });

  it('may refuse a system message only if one is given', () => {
    const tokenizer = withTemplate(
      loop(`{% if message.role == 'system' %}{{ raise_exception('no system') }}{% endif %}${message}<|im_end|>`),
    );
    const asked: ChatMessage[] = [{ role: 'user', content: 'Go.' }];
    expect(tokenizer.decode(tokenizer.encodePrompt(asked, ''), { special: true })).toBe('user: Go.<|im_end|>');
    expect(() => tokenizer.encodePrompt([{ role: 'system', content: 'x' }, ...asked], '')).toThrow(/no system/);
  });

  it('may trim answers, and sees the special tokens of tokenizer_config.json in both of their forms', () => {
    const template = loop('{{ bos_token + message.content | trim + eos_token }}');
    for (const bos_token of ['<|im_start|>', { content: '<|im_start|>', lstrip: false }]) {
      const tokenizer = new ChatTokenizer(
        files('own', { chatTemplate: template, tokenizerConfig: { bos_token, eos_token: '<|im_end|>' } }),
      );
      expect(tokenizer.render([{ role: 'user', content: ' hi ' }], true)).toBe('<|im_start|>hi<|im_end|>');
    }
  });
});

it('refuses an invalid tokenizer.json in a sentence', () => {
  expect(() => new ChatTokenizer(files('own', { tokenizer: { model: { type: 'Unknown' } } }))).toThrow(UserError);
  expect(() => new ChatTokenizer(files('own', { tokenizer: {} }))).toThrow(
    /a-model: tokenizer\.json cannot be used \(.+\): use a model whose tokenizer\.json/,
  );
});
