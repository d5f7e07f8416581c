// `ragen env serve` as shipped: prints one JSON document when it is ready, prints one sentence for an error, and shuts
// down without leftovers.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../../../support/bundles';
import { request } from './serving';

function serve(args: string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [join(root, 'dist/cli.cjs'), 'env', 'serve', ...args], {
    cwd: root,
    env: { ...process.env, ...env },
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const first = new Promise<string>(resolve => createInterface(child.stdout).once('line', resolve));
  const ended = new Promise<number | null>(resolve => child.once('close', resolve));
  return { child, first, ended, said: () => said };
}

it('serves until it is interrupted', async () => {
  const args = ['frozen_lake', '--set', 'size=5', '--port', '0', '--json', '--api-key-env', 'RAGEN_TEST_KEY'];
  const { child, first, ended } = serve(args, { RAGEN_TEST_KEY: 'secret' });
  const { url, ...rest } = JSON.parse(await first) as { url: string };
  expect(rest).toEqual({ environments: ['frozen_lake'], key: true });
  const headers = { 'x-api-key': 'secret' };
  const { json } = await request(url, '/frozen_lake/reset', { seed: 1 }, { headers });
  expect((json.observation as { text: string }).text.split('\n')).toHaveLength(5);
  expect((await request(url, '/reset', {})).status).toBe(401);
  child.kill('SIGINT');
  expect(await ended).toBe(0);
});

/** Ids of a process's children. */
const childrenOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);

it.runIf(process.platform === 'linux')('does not pass its own key to the processes of its environments', async () => {
  const keys = { RAGEN_TEST_KEY: 'of-the-server', HF_TOKEN: 'hf_of-the-user', OPENAI_API_KEY: 'sk-of-the-user' };
  const { child, first, ended } = serve(
    ['frozen_lake', '--port', '0', '--json', '--api-key-env', 'RAGEN_TEST_KEY'],
    keys,
  );
  await first;
  const children = childrenOf(child.pid!);
  expect(children.length).toBeGreaterThan(0);
  for (const pid of children) {
    const variables = readFileSync(`/proc/${pid}/environ`, 'utf8');
    expect(variables).toContain('PATH=');
    for (const [name, value] of Object.entries(keys)) expect(variables).not.toMatch(new RegExp(`${name}=|${value}`));
  }
  child.kill('SIGINT');
  expect(await ended).toBe(0);
});

it.each([
  [
    ['frozen_lake', '--host', '0.0.0.0', '--port', '0'],
    /^env serve: --host 0\.0\.0\.0 can be reached by other machines: /,
  ],
  [
    ['frozen_lake', '--api-key-env', 'RAGEN_NO_KEY'],
    /^env serve: the environment variable RAGEN_NO_KEY is not set: set it to the key that clients must send$/m,
  ],
  [['frozen_lake', '--port', '-1'], /^env serve: -1 is not a number: give a whole number of at least 0$/m],
  [
    ['frozen_lake', 'sokoban', '--set', 'size=5'],
    /^env serve: --set size=5 needs exactly one environment, but 2 are served: name one environment$/m,
  ],
  [['frozen_lake', '--set', 'size=big', '--port', '0'], /env_config\.size, which is "big"/],
  [['nowhere', '--port', '0'], /nowhere/],
])('%j is refused in one sentence', async (args, sentence) => {
  const { ended, said } = serve(args);
  expect(await ended).toBe(1);
  expect(said()).toMatch(sentence);
  expect(said().trim().split('\n')).toHaveLength(1);
});
