// Tokenizers and chat templates in the style of Qwen2.5, Qwen3, Llama 3 and SmolLM2, read from a model folder, against
// transformers (test/golden/make/chat_tokenizers.py): ids and decoded text of several hundred strings, text and ids of
// conversations.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../../extension/models/tokenizer/chat-template';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';

interface Strings {
  texts: string[];
  ids: Record<string, number[][]>;
  /** Decoded texts that differ from the original, by index. */
  decoded: Record<string, Record<number, string>>;
}
interface Rendered {
  /** Index into `messages`. */
  messages: number;
  add_generation_prompt: boolean;
  kwargs: Record<string, unknown>;
  text: string;
  ids: number[];
}
const folder = (family: string): string => `test/golden/chat/${family}`;
const read = (name: string): unknown => JSON.parse(readFileSync(`test/golden/chat/${name}.json`, 'utf8'));
const strings = read('strings') as Strings;
const conversations = read('conversations') as { messages: ChatMessage[][]; rendered: Record<string, Rendered[]> };

describe.each(['qwen2.5', 'qwen3', 'llama3', 'smollm2'])('%s', family => {
  const tokenizer = readTokenizer(folder(family));

  it('gives the ids of transformers for every string', () => {
    expect(strings.texts.length).toBeGreaterThan(300);
    const wrong = strings.texts.flatMap((text, i) => {
      const [ours, theirs] = [tokenizer.encode(text), strings.ids[family][i]];
      return ours.join() === theirs.join() ? [] : [{ text, ours, theirs }];
    });
    expect(wrong).toEqual([]);
  });

  it('decodes to the text of transformers', () => {
    strings.ids[family].forEach((ids, i) => {
      expect(tokenizer.decode(ids, { special: true })).toBe(strings.decoded[family][i] ?? strings.texts[i]);
    });
  });

  it('replaces an unpaired surrogate by the replacement character', () => {
    for (const half of ['\ud83d', '\ude42']) {
      expect(tokenizer.encode(half)).toEqual(tokenizer.encode('\ufffd'));
      expect(tokenizer.encode(`a${half} b`)).toEqual(tokenizer.encode('a\ufffd b'));
    }
  });

  it('renders and tokenises conversations as apply_chat_template does', () => {
    const rows = conversations.rendered[family];
    expect(rows.length).toBeGreaterThanOrEqual(50);
    const withVariables = new Map<string, ReturnType<typeof readTokenizer>>();
    for (const { messages, add_generation_prompt, kwargs, text, ids } of rows) {
      const key = JSON.stringify(kwargs);
      if (!withVariables.has(key)) withVariables.set(key, readTokenizer(folder(family), { variables: kwargs }));
      const chat = withVariables.get(key)!;
      expect(chat.render(conversations.messages[messages], add_generation_prompt)).toBe(text);
      expect(chat.encode(text)).toEqual(ids);
      if (add_generation_prompt) expect(chat.encodePrompt(conversations.messages[messages], '')).toEqual(ids);
    }
  });

  it('continues an episode with the text that the template writes between turns', () => {
    const messages: ChatMessage[] = [
      { role: 'user', content: 'State:\nP_G' },
      { role: 'assistant', content: '<answer>Right</answer>' },
      { role: 'user', content: 'State:\n_PG' },
    ];
    const [stop] = tokenizer.stopTokenIds;
    const ids = [
      ...tokenizer.encodePrompt(messages.slice(0, 1), ''),
      ...tokenizer.encode(messages[1].content),
      stop,
      ...tokenizer.encodeContinuation([stop], messages[2].content, ''),
    ];
    expect(tokenizer.decode(ids, { special: true })).toBe(tokenizer.render(messages, true));
  });
});

it('stops at the tokens of generation_config.json and the template', () => {
  const text = (family: string): string[] => {
    const tokenizer = readTokenizer(folder(family));
    return tokenizer.stopTokenIds.map(id => tokenizer.decode([id], { special: true }));
  };
  expect(text('qwen2.5')).toEqual(['<|im_end|>', '<|endoftext|>']);
  expect(text('llama3')).toEqual(['<|eot_id|>', '<|end_of_text|>', '<|eom_id|>']);
});

it('has one token that begins the text, which Llama 3’s template writes', () => {
  const tokenizer = readTokenizer(folder('llama3'));
  const ids = tokenizer.encodePrompt([{ role: 'user', content: 'x' }], '');
  const bos = tokenizer.encode('<|begin_of_text|>');
  expect(bos).toHaveLength(1);
  expect(ids.filter(id => id === bos[0])).toEqual(bos);
  expect(ids[0]).toBe(bos[0]);
});

it('takes a whole vocabulary word as a token only where merges are ignored', () => {
  expect(readTokenizer(folder('llama3')).encode(' strawberry')).toHaveLength(1);
  expect(readTokenizer(folder('qwen2.5')).encode(' strawberry').length).toBeGreaterThan(1);
});
