// `ragen resume RUN trainer.total_training_steps=6`: a finished run becomes bitwise equal to a run with that number of
// steps from the start. Its manifest keeps its signature, and an override of a fixed key is refused with the reason.
import { readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  document,
  killAll,
  leaseOf,
  ragen,
  readRun,
  results,
  startDetached,
  statusOf,
  until,
} from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let short: string;
const steps = 'trainer.total_training_steps';
const resume = (...args: string[]) => ragen(workspace.folder, ['resume', basename(short), ...args]);
const manifest = () => readFileSync(join(short, 'manifest.json'), 'utf8');

beforeAll(async () => {
  workspace = makeWorkspace();
  short = await startDetached(workspace.folder, [`${steps}=2`, 'workbench.keep_checkpoints=10']);
  await until('it ends', () => !leaseOf(short));
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

test('refuses changes of fixed keys, and leaves the run unchanged', async () => {
  const before = [manifest(), readRun(short)];
  const id = basename(short);
  const said = async (...args: string[]) => {
    const { code, stderr } = await resume(...args);
    expect(code).toBe(1);
    return stderr;
  };
  expect(await said('model_path=other')).toMatch(
    new RegExp(
      `^model_path cannot change in run ${id}, since its checkpoints contain weights of its first model: start a new run with ragen train --from ${id} model_path=other, or change one of actor_rollout_ref`,
    ),
  );
  expect(await said('es_manager.train.group_size=2')).toMatch(
    /since its episodes so far were played with the old value/,
  );
  expect(await said('algorithm.adv_estimator=rloo')).toMatch(
    /since its weights so far were trained with the old value/,
  );
  expect(await said(`${steps}=many`)).toBe(`${steps} is "many": use a number\n`);
  expect(await said(steps)).toMatch(/is not a setting: write key=value/);
  expect(await said(`${steps}=2`, 'actor_rollout_ref.actor.optim.lr=0.1')).toMatch(
    /is 2, but a change would take effect only from step 3: use 3 or more/,
  );
  expect(await said(`${steps}=4`, 'actor_rollout_ref.actor.optim.lr=-1')).toMatch(/lr is -1: use /);
  expect([manifest(), readRun(short)]).toEqual(before);
});

test('extends a finished run to a run that is bitwise equal to a run of that length from the start', async () => {
  const signed = manifest();
  const { code, answer, stderr } = await document(workspace.folder, ['resume', basename(short), `${steps}=4`]);
  expect(code, stderr).toBe(0);
  expect(answer).toMatchObject({ state: 'finished', steps: 4 });
  const long = await startDetached(workspace.folder, [`${steps}=4`, 'workbench.keep_checkpoints=10']);
  await until('it ends', () => !leaseOf(long));
  expect(results(short)).toEqual(results(long));
  expect(manifest()).toBe(signed);
  expect(readRun(short).events.filter(({ data }) => data?.key === steps)).toMatchObject([
    { step: 2, data: { from: 2, to: 4 } },
  ]);
  expect(statusOf(short)).toMatchObject({ state: 'finished', step: 4, total_steps: 4 });
});

test('a later resume continues with the changed settings', async () => {
  const { answer } = await document<{ state: string; steps: number }>(workspace.folder, ['resume', basename(short)]);
  expect(answer).toMatchObject({ state: 'finished', steps: 4 });
  const again = await resume(`${steps}=5`, 'trainer.test_freq=-1');
  expect(again.code, again.stderr).toBe(0);
  const { metrics } = readRun(short);
  expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(metrics.map(line => 'val-env/Words/success' in line)).toEqual([true, false, true, false, true, false]);
});
