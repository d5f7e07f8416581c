// All built-in environments that need no other program, as in a run: built, loaded into the environment process with
// their defaults, and solved by their solvers. Missing data is reported when the environment is loaded.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { buildEntry, root, startProcess } from '../../../support/bundles';

let entry: string;
let running: EnvironmentProcess;
beforeAll(async () => {
  entry = await buildEntry();
  ({ running } = await startProcess(entry, { stepTimeoutMs: 5000 }));
});
afterAll(async () => {
  await running.stop();
  rmSync(dirname(entry), { recursive: true, force: true });
});

const registry = JSON.parse(readFileSync(join(root, 'envs/registry.json'), 'utf8')) as Record<string, string>;
const spec = (env_type: string, config: Record<string, unknown> = {}) => ({
  tag: env_type,
  env_type,
  source: join(root, 'envs', registry[env_type]),
  config,
});

/** Environments that need a server, a program or isolation, which have separate tests. */
const elsewhere = ['alfworld', 'deepcoder', 'lean', 'program', 'remote', 'verifiers'];
/** Configurations in which the solver's actions always succeed, for environments whose defaults are random. */
const configs: Record<string, Record<string, unknown>> = {
  frozen_lake: { is_slippery: false },
  noisy_lake: { is_slippery: false },
};
/** Environments without a solver for their defaults. */
const unsolved = ['game_2048'];

test('each environment loads, and is solved if it has a solver', async () => {
  const names = Object.keys(registry).filter(name => !elsewhere.includes(name));
  expect(names.length).toBe(Object.keys(registry).length - elsewhere.length);
  const { environments, error } = await running.load(names.map(name => spec(name, configs[name])));
  expect(error).toBeUndefined();
  const solvable = environments.filter(({ has_solver }) => has_solver).map(({ tag }) => tag);
  expect(solvable).toEqual(names.filter(name => !unsolved.includes(name)));
  const begun = await running.reset(
    names.map(tag => ({ episode: tag, tag, seed: 10005, member: 0, mode: 'train' as const })),
  );
  expect(begun.map(({ error }) => error)).toEqual(names.map(() => undefined));
  const solutions = await running.solve(solvable);
  const steps = await running.step(solutions.map(({ episode, actions }) => ({ episode, actions: actions! })));
  expect(steps.map(({ episode, outcomes }) => [episode, outcomes.at(-1)])).toEqual(
    solvable.map(name => [
      name,
      expect.objectContaining({ terminated: true, info: expect.objectContaining({ success: true }) }),
    ]),
  );
});

test('a path to a missing file is refused with a remedy', async () => {
  const { error } = await running.load([spec('countdown', { train_path: '/nowhere/train.parquet' })]);
  expect(error?.message).toMatch(
    /^environment countdown \(.*index\.ts.*\) needs a data set, but \S*nowhere\S*train\.parquet.* does not exist.*: set env_config\.train_path to a file/,
  );
});
