// Pictures of earlier turns in a context memory of the workspace: what the memory receives is the same in every process,
// and a placeholder that it quotes shows its picture.
import { beforeEach, expect, test, vi } from 'vitest';
import type { MemoryRequest } from '../../../../envs/api/plugins/memory';
import type { ChatMessage } from '../../../../extension/models/tokenizer/chat-template';
import type { PromptTokenizer } from '../../../../extension/trainer/rollout/prompt-tokenizer';
import type { CurrentTurn } from '../../../../extension/trainer/rollout/context-window';
import type { TurnPrompt } from '../../../../extension/trainer/rollout/turn-protocol';
import { partial } from '../../../support/partial';

const pictures = ['a', 'b'].map(letter => ({ name: letter.repeat(64), width: 28, height: 56 }));
beforeEach(() => void vi.resetModules());

/** Prepares the second turn in a module instance of its own, as another process would. */
async function secondTurn(write: (request: MemoryRequest) => string) {
  const { splitAtMarks, withMarks } = await import('../../../../extension/common/picture-mark');
  const { RememberedWindow } = await import('../../../../extension/trainer/rollout/remembered-window');
  const requests: MemoryRequest[] = [];
  let prompt: readonly ChatMessage[] = [];
  const window = new RememberedWindow(
    partial<PromptTokenizer>({ encodePrompt: (messages: readonly ChatMessage[]) => ((prompt = messages), [1]) }),
    {
      ...{ system: '', prefix: '', turns: Infinity },
      protocol: { enable_think: false, action_sep: '||', max_actions_per_turn: 1 },
    },
    'own',
    request => (requests.push(request), Promise.resolve(write(request))),
  );
  const [first, second] = ['See <image> and <image>.', 'Now.'].map((text, i): TurnPrompt => ({
    ...{ turn: i + 1, state: withMarks(text, pictures), actions_left: 1, warn: false, max_tokens: 9 },
  }));
  const answered = partial<CurrentTurn['history'][number]>({ state: first.state, raw: 'Up', executed: ['Up'] });
  await window.prepare({ prompts: [first, second], history: [answered] }, 100);
  const content = prompt[1].content.split('\n\nTurn 2')[0];
  return { request: requests[0], content, parts: splitAtMarks(content) };
}

test('a quoted placeholder shows its picture', async () => {
  const { parts } = await secondTurn(({ past }) => `Before: ${past[0].state}`);
  expect(parts).toEqual(['Before: See ', pictures[0], ' and ', pictures[1], '.']);
});

test('a memory gets and writes the same in every process, also if it cuts a placeholder', async () => {
  const cut = ({ past }: MemoryRequest): string => past[0].state.slice(0, 30);
  const first = await secondTurn(cut);
  vi.resetModules();
  const second = await secondTurn(cut);
  expect(second.request).toEqual(first.request);
  expect(second.content).toBe(first.content);
  expect(first.parts).toEqual([first.content]);
});

test('a placeholder of a picture that the episode did not show stays a text', async () => {
  const { parts } = await secondTurn(() => `\u0002${'c'.repeat(64)} 28 56\u0002`);
  expect(parts).toHaveLength(1);
});
