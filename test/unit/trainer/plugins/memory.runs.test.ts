// Context memories of the workspace in runs: their text precedes each turn but the first, in training and validation; it
// is shortened until the prompt fits; faults end the run with one sentence.
import { rmSync } from 'node:fs';
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { resumedHere } from '../../../support/opened-run';
import { results } from '../../../support/terminal';
import { trainHere } from '../../../support/train-here';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeEach(() => (workspace = makeWorkspace()));
afterEach(() => workspace.remove());
afterAll(() => rmSync(installation.cache, { recursive: true, force: true }));

function write(remember: string): string {
  workspace.write(
    'plugins/own.ts',
    `import { defineMemory } from 'ragen-workbench/api/plugins/memory';
export default defineMemory({ name: 'own', remember: ${remember} });
`,
  );
  return 'workbench.plugins.memory=plugins/own.ts';
}

const windowed = (turns: number) => [
  'agent_proxy.context_window_mode=single_turn',
  `agent_proxy.max_context_window=${turns}`,
  'agent_proxy.max_turn=3',
];

const told =
  "({ environment, turn, state, past, shown }) => `${environment}: turn ${turn} of ${past.length}, ${shown} shown, ${state.length}: ${past.slice(past.length - shown).map(p => p.turn + ':' + p.executed.join().length).join(';')}\\n`";

test('the text of the memory precedes each turn but the first', async () => {
  const { episodes, validation, end } = await trainHere(
    workspace,
    [write(told), ...windowed(2), 'trainer.test_freq=1', 'trainer.val_before_train=true'],
    1,
  );
  expect(end).toBe('finished');
  expect(validation.length).toBeGreaterThan(0);
  let later = 0;
  for (const { turns, messages } of [...episodes, ...validation]) {
    const users = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    expect(users).toHaveLength(turns.length);
    for (const [i, { turn, state }] of turns.entries()) {
      expect(users[i]).toContain(`Turn ${turn}:\nState:\n${state}`);
      if (turn === 1) {
        expect(users[i]).toMatch(/^\nTurn 1:/);
        continue;
      }
      later++;
      const previous = turns[i - 1];
      expect(users[i].split('\n')[0]).toBe(
        `words: turn ${turn} of ${turn - 1}, 1 shown, ${state.length}: ${previous.turn}:${previous.executed.join().length}`,
      );
    }
  }
  expect(later).toBeGreaterThan(4);
}, 120_000);

test('a memory that repeats the built-in one gives the same run to the bit', async () => {
  workspace.write(
    'plugins/own.ts',
    `import { defineMemory } from 'ragen-workbench/api/plugins/memory';
export default defineMemory({
  name: 'own',
  firstTurn: true,
  remember({ turn, current, past, shown }) {
    const now = \`(Turn \${turn}):\\n\${current}\`;
    if (shown === 0) return { message: now };
    const blocks = past.slice(past.length - shown).map(({ turn, state, raw, thought, answer, executed, reward }) => {
      const action = answer === null ? raw : \`\${thought === null ? '' : \`<think>\${thought}</think>\`}<answer>\${answer}</answer>\`;
      const earned = executed.length === 0 ? '0' : Number.isInteger(reward) ? reward.toFixed(1) : String(reward);
      return \`Turn \${turn} State:\\n\${state}\\nTurn \${turn} Action:\\n\${action}\\nTurn \${turn} Reward:\\n\${earned}\\n\`;
    });
    const summary = \`Summary: \${past.length} step(s) completed so far, showing the last \${shown} turn(s) below.\`;
    return { message: \`\${summary}\\n\\nRecent turns:\\n---\\n\${blocks.join('---\\n')}---\\n\\nCurrent Turn \${now}\` };
  },
});
`,
  );
  const own = await trainHere(workspace, ['workbench.plugins.memory=plugins/own.ts', ...windowed(2)], 2);
  const builtIn = await trainHere(workspace, windowed(2), 2);
  const { metrics, weights } = results(own.folder);
  const expected = results(builtIn.folder);
  expect({ metrics, weights }).toEqual({ metrics: expected.metrics, weights: expected.weights });
}, 120_000);

test('a resumed run with a memory equals an uninterrupted one', async () => {
  const memory = [write(told), ...windowed(-1)];
  const complete = await trainHere(workspace, memory, 3);
  const { folder } = await resumedHere(workspace, memory, 3);
  const { metrics, weights } = results(folder.path);
  const expected = results(complete.folder);
  expect({ metrics, weights }).toEqual({ metrics: expected.metrics, weights: expected.weights });
}, 120_000);

test('a text that does not fit is asked for again with fewer turns', async () => {
  const long = "({ shown }) => 'x '.repeat(250 * shown) + shown + ' shown\\n'";
  const { episodes } = await trainHere(
    workspace,
    [write(long), ...windowed(-1), 'actor_rollout_ref.rollout.max_model_len=512'],
    1,
  );
  const thirds = episodes.filter(({ turns }) => turns.length >= 3);
  expect(thirds.length).toBeGreaterThan(0);
  for (const { messages } of thirds) {
    const users = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
    expect(users[2]).toMatch(/(?<!\d)[01] shown\n/); // 2 turns need more than the context
  }
}, 120_000);

test.each([
  ["() => { throw new Error('no idea') }", /plugins\/own\.ts.*no idea/],
  [
    '() => JSON.parse("7") as string',
    'plug-in plugins/own.ts returned 7 in remember(): return a text, which may be empty, or { message } with a text that is not empty',
  ],
  [
    "() => ({ message: '' })",
    "plug-in plugins/own.ts returned { message: '' } in remember(): return a text, which may be empty, or { message } with a text that is not empty",
  ],
  ["() => 'x'.repeat(2e6)", 'plug-in plugins/own.ts returned 2000000 characters in remember(): return at most 1000000'],
])(
  'a memory that is %s ends the run with one sentence',
  async (remember, sentence) => {
    await expect(trainHere(workspace, [write(remember), ...windowed(-1)], 1)).rejects.toThrow(sentence);
  },
  120_000,
);

test('a memory needs prompts of one turn', async () => {
  await expect(trainHere(workspace, [write('() => 1 as never')], 1)).rejects.toThrow(
    'config: workbench.plugins.memory names a memory, but agent_proxy.context_window_mode is full: set it to single_turn',
  );
}, 60_000);
