// The planning process of the built CLI: it answers checks and plans, reads changed files again, is replaced after its
// death, and ends when it is disposed of.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { execPath, kill } from 'node:process';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { ConfigError } from '../../../../extension/vscode/processes/cli-command';
import { Planner } from '../../../../extension/vscode/processes/planner';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();
let planner: Planner;
/** Ids of the started processes. */
const processes = (): number[] => readFileSync(join(folder(), 'pids'), 'utf8').trim().split('\n').map(Number);

beforeEach(() => {
  const cli = join(folder(), 'cli.cjs'); // notes its process, then is the CLI
  const [pids, built] = [join(folder(), 'pids'), resolve('dist/cli.cjs')].map(path => JSON.stringify(path));
  writeFileSync(cli, `require('node:fs').appendFileSync(${pids}, process.pid + '\\n'); require(${built});`);
  planner = new Planner({
    cliFor: cwd => Promise.resolve({ node: { path: execPath, version: '24.0.0', electron: false }, cli, cwd }),
    log: () => undefined,
  });
});
afterEach(() => planner.dispose());

const question = (...overrides: string[]) => ({ workspace: folder(), configName: 'quickstart', overrides });

it('checks and plans with one process', async () => {
  planner.warm(folder());
  const { config } = await planner.check(question('trainer.total_training_steps=7'));
  expect(config).toMatchObject({ trainer: { total_training_steps: 7 } });
  const { run } = await planner.plan(question('trainer.total_training_steps=7'));
  expect(run).toMatchObject({ fits: expect.any(Boolean) as boolean, model: { path: 'ragen-tiny' } });
  expect(processes()).toHaveLength(1);
});

it('plans the image tokens of pictures, and follows the limit of their pixels', async () => {
  const planned = async (...overrides: string[]) =>
    (await planner.plan({ ...question(...overrides), configName: 'quickstart-vision' })).run;
  const { notes, rows } = await planned();
  expect(notes).toEqual([
    'config: custom_envs.QuickVisualLake: a picture of 112 × 112 pixels takes 16 image tokens, and 5 of them in a prompt take 80 of max_model_len 1024',
  ]);
  expect(rows.map(({ what }) => what)).toEqual(
    expect.arrayContaining([
      'vision encoder',
      'encoder activations',
      'kept image features',
      'image features of a call',
    ]),
  );
  const [reduced] = (await planned('data.max_pixels=3136')).notes;
  expect(reduced).toContain('takes 4 image tokens, and 5 of them in a prompt take 20 of');
});

it('reports every problem of a configuration with its key', async () => {
  const wrong = planner.check(question('trainer.total_training_steps=none', 'lora.rank=-1'));
  const error = await wrong.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ConfigError);
  expect((error as ConfigError).problems.map(({ key }) => key)).toEqual(
    expect.arrayContaining(['trainer.total_training_steps', 'lora.rank']),
  );
});

it('reads a changed configuration file again', async () => {
  mkdirSync(join(folder(), 'config'));
  const check = (steps: number) => {
    const text = `defaults: [quickstart, _self_]\ntrainer: {total_training_steps: ${steps}}\n`;
    writeFileSync(join(folder(), 'config', 'own.yaml'), text);
    return planner.check({ workspace: folder(), configName: 'own', overrides: [] });
  };
  expect((await check(3)).config).toMatchObject({ trainer: { total_training_steps: 3 } });
  expect((await check(4)).config).toMatchObject({ trainer: { total_training_steps: 4 } });
  expect(processes()).toHaveLength(1);
});

it('starts another process after the first one died', async () => {
  await planner.check(question());
  kill(processes()[0], 'SIGKILL');
  const { config } = await planner.check(question());
  expect(config).toMatchObject({ trainer: { experiment_name: 'quickstart' } });
  expect(processes()).toHaveLength(2);
});

it('ends its process when it is disposed of', async () => {
  await planner.check(question());
  planner.dispose();
  await vi.waitFor(() => expect(() => kill(processes()[0], 0)).toThrow(), { timeout: 20_000 });
});
