import { expect, test } from 'vitest';
import { acceptShortage, type Terminal } from '../../../../extension/cli/run-lifecycle/memory-question';
import { MemoryShortage } from '../../../../extension/run-data/memory-shortage';

const gib = 2 ** 30;
const memory = { planned: 15.4 * gib, available: 12.3 * gib, phase: 'policy update' };
const sentence = 'the run may need 15.4 GiB in its policy update, but 12.3 GiB is available';

/** A terminal whose user gives this answer; null for a terminal without a user. */
function terminal(answer: string | null): Terminal & { shown: string[] } {
  const shown: string[] = [];
  const ask = (question: string) => {
    shown.push(question);
    return Promise.resolve(answer ?? '');
  };
  return { isInteractive: answer !== null, ask, print: line => void shown.push(line), shown };
}

test.each(['y', 'Yes', ' YES '])('the user starts the run with the answer %j', async answer => {
  const shell = terminal(answer);
  await acceptShortage(memory, {}, shell);
  expect(shell.shown).toEqual([`Memory: ${sentence}. Start anyway? [y/N] `]);
});

test.each(['', 'n', 'yesterday'])('with the answer %j no run is started', async answer => {
  await expect(acceptShortage(memory, {}, terminal(answer))).rejects.toThrow(/was not started.*--yes$/);
});

test('without a user, or with --json, the start is refused; --yes starts the run with a note', async () => {
  await expect(acceptShortage(memory, {}, terminal(null))).rejects.toThrow(MemoryShortage);
  await expect(acceptShortage(memory, { json: true }, terminal('y'))).rejects.toThrow(MemoryShortage);
  for (const json of [false, true]) {
    const shell = terminal(null);
    await acceptShortage(memory, { json, yes: true }, shell);
    expect(shell.shown).toEqual([`note: memory: ${sentence}`]);
  }
});
