// Chat templates with any newlines, and conversations that continue after an answer however it ended, against
// transformers (test/golden/make/chat_turns.py).
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../../../../extension/models/tokenizer/chat-template';
import type { ChatTokenizer } from '../../../../extension/models/tokenizer/chat-tokenizer';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { EpisodeContext } from '../../../../extension/trainer/rollout/context-manager';
import { temporaryFolder } from '../../../support/temporary-folder';

interface Golden {
  messages: ChatMessage[];
  newlines: { place: string; template: string; text: string }[];
  continued: Record<string, { messages: ChatMessage[]; text: string; ids: number[] }[]>;
}
const chat = (...names: string[]): string => join('test/golden/chat', ...names);
const golden = JSON.parse(readFileSync(chat('turns.json'), 'utf8')) as Golden;
const folder = temporaryFolder();

it.each(golden.newlines)('a template in $place with its own newlines renders as in Python: %#', row => {
  const { place, template, text } = row;
  cpSync(chat('qwen2.5', 'tokenizer.json'), join(folder(), 'tokenizer.json'));
  const isJson = place.endsWith('.json');
  writeFileSync(join(folder(), place), isJson ? JSON.stringify({ chat_template: template }) : template);
  expect(readTokenizer(folder()).render(golden.messages, true)).toBe(text);
});

/** The ids of a conversation whose answers are sampled, each closed by `end`, up to the next answer. */
function grown(tokenizer: ChatTokenizer, messages: readonly ChatMessage[], end: readonly number[]): number[] {
  const ids = tokenizer.encodePrompt(messages.slice(0, 1), '');
  for (let i = 1; i < messages.length; i += 2) {
    const answer = [...tokenizer.encode(messages[i].content), ...end];
    ids.push(...answer, ...tokenizer.encodeContinuation(answer, messages[i + 1].content, ''));
  }
  return ids;
}

describe.each(['qwen2.5', 'llama3'])('the next prompt of %s', family => {
  const tokenizer = readTokenizer(chat(family), { variables: { date_string: '26 Jul 2024' } });
  const [turnEnd, ...others] = tokenizer.stopTokenIds;

  it("equals the template's after an answer that ended with its turn end", () => {
    for (const { messages, ids } of golden.continued[family])
      expect(grown(tokenizer, messages, [turnEnd])).toEqual(ids);
  });

  it("equals the template's after an answer that was truncated", () => {
    for (const { messages, ids } of golden.continued[family]) expect(grown(tokenizer, messages, [])).toEqual(ids);
  });

  it.each(others)("equals the template's, after the sampled id %i that ends a sequence but not a turn", other => {
    expect(others.length).toBeGreaterThan(0);
    for (const { messages, ids, text } of golden.continued[family]) {
      const found = grown(tokenizer, messages, [other]);
      const turns = (messages.length - 1) / 2;
      expect(found.filter(id => id === other)).toHaveLength(turns);
      expect(found.filter(id => id !== other)).toEqual(ids);
      const visible = tokenizer.decode([other], { special: true });
      expect(tokenizer.decode(found, { special: true }).replaceAll(visible, '')).toBe(text);
    }
  });

  it('closes a last answer in the same way', () => {
    const closed = tokenizer.encodeEnd([turnEnd]);
    expect(tokenizer.encodeEnd([])).toEqual([turnEnd, ...closed]);
    for (const other of others) expect(tokenizer.encodeEnd([7, other])).toEqual([turnEnd, ...closed]);
  });
});

it('an appended turn end is not trained on', () => {
  const tokenizer = readTokenizer(chat('qwen2.5'));
  const [turnEnd, endOfText] = tokenizer.stopTokenIds;
  const ask = [tokenizer.encodePrompt([{ role: 'user', content: 'a' }], '')];
  const sampled = [...tokenizer.encode('Up'), endOfText];
  ask.push([...ask[0], ...sampled, ...tokenizer.encodeContinuation(sampled, 'b', '')]);
  const window = {
    *prompts({ answers }: { answers: readonly unknown[] }) {
      yield { ids: ask[answers.length], shows: [], added: [] };
    },
  };
  const context = new EpisodeContext(tokenizer, window, {
    system: '',
    prefix: '',
    max_model_len: 500,
    response_length: 10,
    samplePerTurn: false,
    contextMask: null,
    mask: {
      closed: true,
      mask: ({ ids, turns }) =>
        ids.reduce(
          (mask, _, t) => ((mask[t] = Number(turns.some(({ span }) => span[0] <= t && t < span[1]))), mask),
          new Uint8Array(ids.length),
        ),
    },
  });
  const prompt = { turn: 1, state: '', actions_left: 1, warn: false, max_tokens: 10 };
  for (let turn = 0; turn < 2; turn++) {
    context.prompt({ ...prompt, turn: turn + 1 }, []);
    context.accept({ ids: sampled, logprobs: sampled.map(() => -1) });
  }
  const [{ ids, mask, logprobs, turns }] = context.samples();
  expect(turns).toHaveLength(2);
  const ends = [...ids.keys()].filter(t => ids[t] === turnEnd && ids[t - 1] === endOfText);
  expect(ends).toHaveLength(2); // after the first answer and after the last
  for (const t of ends) expect([mask[t], logprobs[t], mask[t - 1]]).toEqual([0, 0, 1]);
});
