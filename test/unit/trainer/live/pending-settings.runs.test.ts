// Settings changed while a run trains: refused changes and their messages, the step from which a change applies, and a
// resume, which continues with the settings of its checkpoint, bit by bit.
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { changeable, configInEffect, valueAt, withSetting } from '../../../../extension/run-data/changeable-settings';
import { change } from '../../../../extension/protocol/trainer-link';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { PendingSettings } from '../../../../extension/trainer/live/pending-settings';
import {
  document,
  kill,
  killAll,
  leaseOf,
  ragen,
  readRun,
  results,
  startDetached,
  statusOf,
  until,
} from '../../../support/terminal';
import { HeldEpisodes } from '../../../support/held-episodes';
import { joinRun } from '../../../support/watcher';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';
import { partial } from '../../../support/partial';

const presetFolders = [join(root, 'media/presets')];
const load = (...overrides: string[]) =>
  loadConfig({ configName: 'quickstart', overrides, workspace: '/', presetFolders }).config;

const lr = 'actor_rollout_ref.actor.optim.lr';
const entropy = 'actor_rollout_ref.actor.entropy_coeff';
const steps = 'trainer.total_training_steps';
const temperature = 'actor_rollout_ref.rollout.temperature';
const filter = 'actor_rollout_ref.rollout.rollout_filter_value';

describe('a setting change', () => {
  const refusal = (settings: PendingSettings, values: Record<string, unknown>): string => {
    try {
      settings.request(values);
    } catch (error) {
      return (error as Error).message;
    }
    return '';
  };

  it('waits for the end of the current step, and applies from the next', () => {
    const settings = new PendingSettings(load());
    settings.apply(1, true);
    const { lr: before } = settings.config.actor_rollout_ref.actor.optim;
    expect(settings.request({ [lr]: 1e-7, [entropy]: 0.5 })).toMatchObject({
      step: 2,
      changes: [{ key: lr, from: before, to: 1e-7 }, { key: entropy }],
    });
    settings.request({ [entropy]: 0.25 }); // another change of the same key
    expect(settings.request({ [lr]: 2e-7 }, true).changes).toHaveLength(1); // dry run
    expect(settings.config.actor_rollout_ref.actor.optim.lr).toBe(before);
    const taken = settings.apply(2, true);
    expect(taken.map(({ key, to }) => [key, to])).toEqual([
      [lr, 1e-7],
      [entropy, 0.25],
    ]);
    expect(settings.config.actor_rollout_ref.actor).toMatchObject({ optim: { lr: 1e-7 }, entropy_coeff: 0.25 });
    expect(settings.apply(3, true)).toEqual([]);
    expect(settings.request({ [lr]: 1e-7 }).changes).toEqual([]);
  });

  it('is refused in one sentence that names key, value and remedy, without any change', () => {
    const settings = new PendingSettings(load());
    settings.apply(5, true);
    expect(refusal(settings, { [lr]: -1 })).toMatch(/^config: actor_rollout_ref\.actor\.optim\.lr is -1: use /);
    expect(refusal(settings, { [temperature]: 'warm' })).toMatch(/^config: .*temperature is "warm": use /);
    expect(refusal(settings, { [lr]: 1e-7, [filter]: 0.001 })).toMatch(/ppo_mini_batch_size/); // a rule between keys
    expect(refusal(settings, { lr: 1e-7 })).toBe(`lr cannot change during training: did you mean ${lr}?`);
    expect(refusal(settings, { 'es_manager.train.group_size': 2 })).toMatch(/cannot change during training/);
    expect(refusal(settings, { 'critic.optim.lr': 1 })).toMatch(
      /has no effect in this run, since algorithm\.adv_estimator is /,
    );
    expect(refusal(settings, { [steps]: 5 })).toMatch(
      /is 5, but a change would take effect only from step 6: use 6 or more/,
    );
    expect(refusal(settings, {})).toMatch(/no setting is given/);
    expect(settings.apply(6, false)).toEqual([]);
  });

  it('is refused in the last step, except for more steps', () => {
    const settings = new PendingSettings(load(`${steps}=3`));
    settings.apply(3, true);
    expect(refusal(settings, { [lr]: 1e-7 })).toMatch(/last step.*raise trainer\.total_training_steps/);
    expect(settings.request({ [lr]: 1e-7, [steps]: 4 }).step).toBe(4);
  });

  it('lets learning rates decay over the changed number of steps if they decayed over all steps', () => {
    const config = partial<Record<string, unknown>>(load());
    const schedule = 'actor_rollout_ref.actor.optim.total_training_steps';
    const longer = withSetting(config, { key: steps, to: 999 });
    expect([valueAt(longer, steps), valueAt(longer, schedule)]).toEqual([999, 999]);
    const own = partial<Record<string, unknown>>(load(`${schedule}=7`));
    expect(valueAt(withSetting(own, { key: steps, to: 999 }), schedule)).toBe(7);
  });

  it('is read from the events, among events of other kinds', () => {
    const config = partial<Record<string, unknown>>(load());
    const event = { time: '', step: 1, kind: 'setting' as const, message: '' };
    const events = [
      event,
      { ...event, data: { key: lr, from: 1, to: 0.5 } },
      { ...event, data: { key: lr, from: 0.5, to: 0.25 } },
    ];
    expect(changeable(configInEffect(config, events)).find(({ key }) => key === lr)?.value).toBe(0.25);
    expect(changeable(config).map(({ key }) => key)).not.toContain('critic.optim.lr');
  });
});

describe('a run', () => {
  let workspace: Workspace;
  let plain: string;
  let changed: string;
  let held: HeldEpisodes;
  const overrides = () => [...held.overrides, 'workbench.keep_checkpoints=10'];
  const ended = (run: string) => until('the run ends', () => !leaseOf(run));
  const values = { [lr]: 0.003, [entropy]: 0.05, [temperature]: 0.7, [filter]: 0.5, [steps]: 5 };

  /** Starts a run whose settings change in its first step. */
  async function startChanged(ask: (run: string) => Promise<void>): Promise<string> {
    held.set('train');
    const run = await startDetached(workspace.folder, overrides());
    await held.reached('train');
    await ask(run);
    return run;
  }

  beforeAll(async () => {
    workspace = makeWorkspace();
    held = new HeldEpisodes(workspace.folder);
    plain = await startDetached(workspace.folder, overrides());
    await ended(plain);
    changed = await startChanged(async run => {
      const watcher = await joinRun(run);
      expect(await watcher.link.sendRequest(change, { values })).toMatchObject({ step: 2 });
      await expect(watcher.link.sendRequest(change, { values: { [lr]: -1 } })).rejects.toThrow(
        /^config: .*lr is -1: use/,
      );
      watcher.close();
    });
    held.release('train');
    await ended(changed);
  });
  afterAll(async () => {
    await killAll(workspace.folder);
    workspace.remove();
  });

  test('continues with the changes from the next step, and logs each as an event', () => {
    const { metrics, events, status } = readRun(changed);
    expect(status).toMatchObject({ state: 'finished', step: 5, total_steps: 5 });
    expect(metrics.map(line => line['actor/lr']).slice(1)).toEqual([0.01, 0.003, 0.003, 0.003, 0.003]);
    const reported = events.filter(({ kind, data }) => kind === 'setting' && data?.key);
    expect(Object.fromEntries(reported.map(({ data }) => [data!.key, data!.to]))).toEqual(values);
    expect(new Set(reported.map(({ step }) => step))).toEqual(new Set([1]));
    const [before, after] = [results(plain), results(changed)];
    expect(after.metrics[1]).toEqual(before.metrics[1]);
    expect(after.metrics[2]['actor/entropy']).not.toBe(before.metrics[2]['actor/entropy']);
    expect(after.episodes['step-000001.jsonl']).toBe(before.episodes['step-000001.jsonl']);
    expect(after.episodes['step-000002.jsonl']).not.toBe(before.episodes['step-000002.jsonl']); // lower temperature
    const kept = (lines: typeof metrics) => lines.slice(2).map(line => Number(line['rollout/filter_kept_ratio']));
    expect(Math.max(...kept(readRun(plain).metrics))).toBe(1);
    expect(Math.max(...kept(metrics))).toBe(0.5);
  });

  test('that is killed after the change continues as if uninterrupted, also with a change by the CLI', async () => {
    const run = await startChanged(async id => {
      const assignments = Object.entries(values).map(([key, value]) => `${key}=${value}`);
      const { code, stdout, stderr } = await ragen(workspace.folder, ['set', basename(id), ...assignments]);
      expect(code, stderr).toBe(0);
      expect(stdout).toContain(`${lr}: 0.01 → 0.003 from step 2 on`);
      const refused = await ragen(workspace.folder, ['set', basename(id), 'lr=1']);
      expect([refused.code, refused.stderr]).toEqual([1, `lr cannot change during training: did you mean ${lr}?\n`]);
    });
    // Lets the run train two steps and pauses it in the third.
    held.release('train');
    await until('step 2', () => (statusOf(run)?.step ?? 0) >= 2);
    held.set('train');
    await held.reached('train');
    await kill(run);
    held.release('train');
    const { code, stderr } = await document(workspace.folder, ['resume', basename(run)]);
    expect(code, stderr).toBe(0);
    expect(results(run)).toEqual(results(changed));
    expect(readRun(run).status).toMatchObject({ state: 'finished', step: 5, total_steps: 5 });
  });

  test('that is resumed from before the change continues without it', async () => {
    const { code, stderr } = await document(workspace.folder, [
      ...['resume', basename(changed), '--from', '1', '--discard'],
    ]);
    expect(code, stderr).toBe(0);
    expect(results(changed)).toEqual(results(plain));
    expect(readRun(changed).events.some(({ data }) => data?.key === lr)).toBe(false);
    expect(statusOf(changed)).toMatchObject({ step: 4, total_steps: 4 });
  });

  test('that is stopped immediately stores earlier requests', async () => {
    const run = await startDetached(workspace.folder, overrides());
    await until('step 1', () => (statusOf(run)?.step ?? 0) >= 1);
    held.set('train');
    await held.reached('train');
    const asked = await ragen(workspace.folder, ['set', basename(run), `${lr}=0.004`]);
    expect(asked.code, asked.stderr).toBe(0);
    process.kill(leaseOf(run)!.pid, 'SIGTERM');
    await until('it stops', () => statusOf(run)?.state === 'stopping');
    held.release('train');
    await ended(run);
    const { step } = statusOf(run)!;
    expect(await document(workspace.folder, ['set', basename(run)])).toMatchObject({
      answer: expect.arrayContaining([{ key: lr, value: 0.004 }]) as unknown,
    });
    expect((await document(workspace.folder, ['resume', basename(run)])).code).toBe(0);
    const rates = readRun(run).metrics.map(line => line['actor/lr']);
    expect(rates.slice(1, step + 1).every(rate => rate === 0.01)).toBe(true);
    expect(rates.slice(step + 1).every(rate => rate === 0.004)).toBe(true);
    const refused = await ragen(workspace.folder, ['set', basename(run), `${lr}=0.004`]);
    expect(refused.stderr).toMatch(/is not training, so no setting can change: resume it first/);
  });
});
