// Chat templates with tools, against transformers (test/golden/make/chat_tools.py): the prompt with its tools, and the
// ids of an episode that grows by sampled calls and their results.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ChatTokenizer } from '../../../../extension/models/tokenizer/chat-tokenizer';
import type { ChatMessage, ChatTool } from '../../../../extension/models/tokenizer/chat-template';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';

interface Golden {
  tools: ChatTool[];
  rendered: Record<string, { messages: ChatMessage[]; text: string; ids: number[] }[]>;
}
const chat = (...names: string[]): string => join('test/golden/chat', ...names);
const { tools, rendered } = JSON.parse(readFileSync(chat('tools.json'), 'utf8')) as Golden;

/** The ids of a conversation whose responses are sampled, each closed by `end`, up to the next response. */
function grown(tokenizer: ChatTokenizer, messages: readonly ChatMessage[], end: readonly number[]): number[] {
  const first = messages.findIndex(({ role }) => role === 'assistant');
  const ids = tokenizer.encodePrompt(first < 0 ? messages : messages.slice(0, first), '', tools);
  for (let at = first; at >= 0 && at < messages.length;) {
    const next = messages.findIndex(({ role }, i) => i > at && role === 'assistant');
    const results = messages.slice(at + 1, next < 0 ? messages.length : next);
    const answer = [...tokenizer.encode(messages[at].content), ...end];
    ids.push(...answer, ...tokenizer.encodeContinuation(answer, results, '', tools));
    at = next < 0 ? messages.length : next;
  }
  return ids;
}

describe.each(Object.keys(rendered))('%s', family => {
  const tokenizer = readTokenizer(chat(family), { variables: { date_string: '26 Jul 2024' } });
  const [turnEnd] = tokenizer.stopTokenIds;

  it.each(rendered[family].map((golden, i) => [i, golden] as const))(
    'conversation %i',
    (_, { messages, text, ids }) => {
      expect(tokenizer.decode(grown(tokenizer, messages, [turnEnd]), { special: true })).toBe(text);
      expect(grown(tokenizer, messages, [turnEnd])).toEqual(ids);
      expect(grown(tokenizer, messages, [])).toEqual(ids); // a truncated call is closed by the template
    },
  );

  it('is recognised by its template', () => {
    const calls = family === 'llama3' ? 'llama3' : 'hermes';
    expect(tokenizer.toolSyntax('auto')).toEqual({ calls, native: true });
    expect(tokenizer.toolSyntax('plain')).toEqual({ calls: 'hermes', native: false });
  });
});

describe('special tokens of Llama 3', () => {
  const tokenizer = readTokenizer(chat('llama3'), { variables: { date_string: '26 Jul 2024' } });

  it('keeps the tag of calls in the text of a response, and no other special token', () => {
    const ids = tokenizer.encode('<|python_tag|>print(1)<|eom_id|>');
    expect(tokenizer.decode(ids)).toBe('print(1)');
    expect(tokenizer.decode(ids, { keep: ['<|python_tag|>'] })).toBe('<|python_tag|>print(1)');
  });

  it('does not close a response that ended by <|eom_id|> once more', () => {
    const answer = tokenizer.encode('<|python_tag|>f.call(x=1)<|eom_id|>');
    const next = tokenizer.encodeContinuation(answer, [{ role: 'tool', content: '1' }], '', tools);
    expect(tokenizer.decode(next, { special: true })).toMatch(/^<\|start_header_id\|>ipython/);
  });
});

it('lists tools in the system message if the template knows none', () => {
  expect(readTokenizer('media/models/ragen-tiny').toolSyntax('auto')).toEqual({ calls: 'hermes', native: false });
});

it('refuses a template that shows tools and writes calls in another form', () => {
  const read = (file: string) => JSON.parse(readFileSync(chat('smollm2', file), 'utf8')) as Record<string, unknown>;
  const template =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{{ tools | tojson if tools else '' }}{{ '<function=x>' if tools else '' }}";
  const tokenizer = new ChatTokenizer({
    folder: 'models/x',
    tokenizer: read('tokenizer.json'),
    tokenizerConfig: read('tokenizer_config.json'),
    chatTemplate: template,
    eosTokenIds: [],
  });
  expect(() => tokenizer.toolSyntax('auto')).toThrow(
    /models\/x: the chat template writes tool calls in an unknown form: set workbench.tools.format/,
  );
  expect(tokenizer.toolSyntax('hermes')).toEqual({ calls: 'hermes', native: true });
});
