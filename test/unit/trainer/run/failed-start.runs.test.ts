// Output of a run that fails at its start, and of a command whose reader disconnects.
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { document, killAll, runsOf } from '../../../support/terminal';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

interface FailedAnswer {
  run: string;
  state: string;
  error: { message: string };
}
const failed = async (...overrides: string[]) => {
  const args = ['train', '--config-name', 'words', ...overrides];
  const { code, answer, stderr } = await document<FailedAnswer>(workspace.folder, args);
  expect(code).toBe(1);
  expect(stderr).toContain(answer.error.message);
  return answer;
};

test('runs that fail before and after their trainer opens its socket return the same keys', async () => {
  const before = await failed('workbench.device=cuda');
  expect(before).toMatchObject({
    state: 'failed',
    error: { message: expect.stringContaining('workbench.device is cuda') as string },
  });
  const after = await failed(
    'actor_rollout_ref.actor.optim.lr=1e30',
    'trainer.test_freq=-1',
    'workbench.max_skipped_steps=0',
  );
  expect(after).toMatchObject({ state: 'failed', error: { message: expect.stringContaining('diverged') as string } });
  expect(Object.keys(after)).toEqual(Object.keys(before));
  expect(runsOf(workspace.folder).map(folder => folder.split('/').at(-1))).toEqual([before.run, after.run].sort());
});

test('a start that fails before the run is created returns only the error', async () => {
  const { code, answer } = await document(workspace.folder, [
    'train',
    '--config-name',
    'words',
    'trainer.test_freq=-7',
  ]);
  expect(code).toBe(1);
  expect(Object.keys(answer)).toEqual(['error']);
});

/**
 * Runs a command, closes its standard output after the first line, and continues to send requests. Returns its exit
 * code, its standard error and the first line.
 */
async function readOneLine(args: readonly string[], input = '') {
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), ...args], { cwd: workspace.folder });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', text => (stderr += text));
  child.stdin.on('error', () => undefined); // the process has ended
  let line = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    line += text;
    if (!line.includes('\n')) return;
    child.stdout.destroy();
    child.stdin.write(input);
  });
  const code = await new Promise<number | null>(resolve => child.once('close', resolve));
  return { code, stderr, line };
}

test('a play session whose reader has disconnected ends without a message', async () => {
  const request = '{"id":1,"do":"restart","seed":3}\n';
  const { code, stderr, line } = await readOneLine(['env', 'play', 'bandit', '--stdio'], request.repeat(3));
  expect(line).toMatch(/^\{"id":0,"session"/);
  expect([code, stderr]).toEqual([0, '']);
});
