// Output of `ragen train|resume|eval|runs|presets`, as text and as JSON.
import { appendFileSync, existsSync, readFileSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLease } from '../../../extension/trainer/store/held-lease';
import { checkpoint as askCheckpoint, pause, resume, stop } from '../../../extension/protocol/trainer-link';
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
} from '../../support/terminal';
import { joinRun } from '../../support/watcher';
import { makeWorkspace } from '../../support/workspace';
import type { Workspace } from '../../support/workspace';
import type { Manifest } from '../../../extension/run-data/run-manifest';

interface Summary {
  run: string;
  folder: string;
  state: string;
  steps: number;
  validation: { step: number; success: number }[];
  wall_s: number;
  tokens_per_s: { rollout: number; train: number };
}

let workspace: Workspace;
/** A finished run of 4 steps that keeps all its checkpoints. */
let whole: Summary;

beforeAll(async () => {
  workspace = makeWorkspace();
  const { code, stderr, answer } = await document<Summary>(workspace.folder, [
    ...['train', '--config-name', 'words'],
    'workbench.keep_checkpoints=10',
  ]);
  expect(code, stderr).toBe(0);
  whole = answer;
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const validationsOf = (run: string): { step: number; success: number; return: number }[] =>
  readRun(run).metrics.flatMap(line =>
    'val-env/Words/success' in line
      ? [
          {
            step: line.step,
            success: line['val-env/Words/success'] as number,
            return: line['val-env/charts/avg_episode_return'] as number,
          },
        ]
      : [],
  );

describe('train', () => {
  test('returns the run, its validations and its speed', () => {
    expect(whole).toMatchObject({ run: basename(whole.folder), state: 'finished', steps: 4 });
    expect(whole.validation.map(({ step }) => step)).toEqual([0, 2, 4]);
    expect(whole.validation).toEqual(validationsOf(whole.folder));
    const { metrics, status } = readRun(whole.folder);
    expect(whole.wall_s).toBe(metrics.at(-1)!.wall_s);
    expect(whole.tokens_per_s.rollout).toBeGreaterThan(0);
    expect(whole.tokens_per_s.train).toBeGreaterThan(0);
    expect(status).toMatchObject({
      state: 'finished',
      step: 4,
      total_steps: 4,
      success: whole.validation[2].success,
      phase: 'idle',
      eta_s: null,
    });
    expect(status!.reward).toBe(metrics.at(-1)!['charts/avg_episode_return']);
  });

  test('writes a complete run folder', () => {
    const { events, checkpoints, episodes } = readRun(whole.folder);
    expect(checkpoints).toEqual(['step-000001', 'step-000002', 'step-000003', 'step-000004']);
    const measured = events.splice(0, 1).concat(events.splice(1, 1)); // with values of this machine
    expect(measured.map(({ kind }) => kind)).toEqual(['memory_plan', 'longest_batch']);
    // Written only if the run ends before the type check.
    const late = 'environments: the types in environment code are not checked (the check was stopped)';
    const said = events.filter(({ message }) => message !== late);
    expect(said.map(({ kind, message }) => `${kind} ${message}`)).toEqual([
      'state running',
      ...checkpoints.map(name => `checkpoint checkpoint checkpoints/${name}`),
      'state finished',
    ]);
    expect(episodes.length).toBe(4 * 8 + 3 * 8);
    const version = episodes[0].environment.version;
    expect(readFileSync(join(whole.folder, 'environments', version, 'environment.js'), 'utf8')).toContain(
      'Say a word.',
    );
    expect(readdirSync(whole.folder).filter(name => name.startsWith('.tmp'))).toEqual([]);
    expect(leaseOf(whole.folder)).toBeNull();
    expect(existsSync(join(whole.folder, 'trainer.sock'))).toBe(false);
  });

  test('writes checkpoints as model folders in Hugging Face’s form, with the optimizer state beside', () => {
    const names = readdirSync(join(whole.folder, 'checkpoints/step-000004'));
    for (const name of ['config.json', 'tokenizer.json', 'model.safetensors', 'actor.m', 'actor.v', 'checkpoint.json'])
      expect(names).toContain(name);
  });

  test('prints one row per step and a summary', async () => {
    const { code, stdout, stderr } = await ragen(workspace.folder, [
      'train',
      '--config-name',
      'words',
      'trainer.total_training_steps=1',
    ]);
    expect(code, stderr).toBe(0);
    expect(stderr.split('\n').filter(line => /^ +[01] /.test(line)).length).toBe(2);
    expect(stdout).toMatch(
      /^Run \S+ finished after 1 steps in \d+ s\.\nValidation success .* → .*\nValidation return .* → /,
    );
  });

  test('prints alarms, and why a run ended early', async () => {
    const { code, stdout, stderr } = await ragen(workspace.folder, [
      'train',
      '--config-name',
      'words',
      'actor_rollout_ref.rollout.response_length=1', // no room for an answer
      'workbench.watch.stop_on=[invalid_answers]',
      'trainer.total_training_steps=9',
    ]);
    expect(code, stderr).toBe(0);
    const reason = 'share of answers without a valid action was above 90 % in each of the last 3 steps: 1, bound 0.9';
    expect(stderr).toContain(`alarm at step 3: ${reason}\n`);
    expect(stderr).toContain(`stopped early at step 3: ${reason}`);
    expect(stdout).toMatch(/^Run \S+ finished after 3 steps/);
    expect(stdout).toContain(`Stopped early at step 3: ${reason} (workbench.watch.stop_on)`);
    expect(stdout).toMatch(/^Alarms: .*invalid_answers \(step 3\)/m);
  });
});

describe('stop and pause', () => {
  test('a detached run is paused, resumed, and ends with a checkpoint', async () => {
    const folder = await startDetached(workspace.folder, ['trainer.total_training_steps=1000', 'trainer.save_freq=-1']);
    const run = basename(folder);
    await until('it trains', () => (statusOf(folder)?.step ?? 0) > 0);
    const held = await document(workspace.folder, ['pause', run]);
    expect(held.answer).toMatchObject({ run, state: 'paused', total_steps: 1000 });
    await until('it is told on disk', () => statusOf(folder)?.state === 'paused');
    await document(workspace.folder, ['resume', run, '--detach']);
    await until('it goes on', () => statusOf(folder)?.state === 'running');
    const ended = await document(workspace.folder, ['stop', run]);
    expect(ended.answer).toEqual({ run, state: 'stopped', step: statusOf(folder)!.step, total_steps: 1000 });
    expect(leaseOf(folder)).toBeNull();
    expect(readRun(folder).checkpoints).toEqual([`step-${String(statusOf(folder)!.step).padStart(6, '0')}`]);
    for (const command of ['stop', 'pause']) {
      const { code, stderr } = await ragen(workspace.folder, [command, run]);
      expect([code, stderr]).toEqual([
        1,
        expect.stringContaining(`run ${run} is not training, so there is nothing to ${command}: see ragen runs`),
      ]);
    }
  });
});

describe('memory', () => {
  const large = [
    'train',
    ...['--config-name', 'words', 'trainer.total_training_steps=1', 'trainer.val_before_train=false'],
    'es_manager.train.group_size=4000000',
  ];
  const runsIn = (): string[] => readdirSync(join(workspace.folder, '.ragen/runs'));

  test('a run whose plan exceeds the available memory is refused with both sizes, and no run is created', async () => {
    const before = runsIn();
    const { code, stderr } = await ragen(workspace.folder, large);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^memory: the run may need [\d.,]+ [GM]iB in its .+, but [\d.]+ [GM]iB is available: lower .* with --yes\n$/,
      ),
    ]);
    const { answer } = await document<{ error: { memory: { planned: number; available: number } } }>(
      workspace.folder,
      large,
    );
    const { memory } = answer.error;
    expect(memory.planned).toBeGreaterThan(memory.available);
    expect(runsIn()).toEqual(before);
  });
});

describe('runs', () => {
  test('lists runs with their state; one whose trainer was lost is interrupted', async () => {
    const lost = await startDetached(workspace.folder, ['trainer.total_training_steps=1000']);
    await until('it trains', () => (statusOf(lost)?.step ?? 0) > 0);
    type Row = { run: string; state: string; live: boolean; silent_s?: number; step: number; total_steps: number };
    const rowOf = async (run: string): Promise<Row | undefined> =>
      (await document<Row[]>(workspace.folder, ['runs'])).answer.find(row => row.run === basename(run));
    const first = await rowOf(lost);
    expect(first).toMatchObject({ state: 'running', live: true, total_steps: 1000 });
    expect(first).not.toHaveProperty('silent_s');
    const { pid } = leaseOf(lost)!;
    process.kill(pid, 'SIGSTOP');
    utimesSync(join(lost, 'lease'), new Date(), new Date(Date.now() - 90_000));
    expect((await ragen(workspace.folder, ['runs'])).stdout).toMatch(
      new RegExp(`^${basename(lost)} +running.*\\(not responding for \\d+ s\\)`, 'm'),
    );
    const silent = await rowOf(lost);
    expect(silent).toMatchObject({ state: 'running', live: true });
    expect(silent!.silent_s).toBeGreaterThanOrEqual(90);
    process.kill(pid, 'SIGCONT');
    await expect.poll(() => readLease(lost)?.life, { timeout: 20_000 }).toBe('responding');
    await kill(lost);
    expect(await rowOf(lost)).toMatchObject({ state: 'interrupted', live: false });
    expect(await rowOf(whole.folder)).toMatchObject({
      state: 'finished',
      live: false,
      step: 4,
      total_steps: 4,
      success: whole.validation[2].success,
    });
    const { stdout } = await ragen(workspace.folder, ['runs']);
    expect(stdout).toMatch(new RegExp(`^${basename(lost)} +interrupted`, 'm'));
    rmSync(lost, { recursive: true });
  });

  test("shows a run's labels, and omits archived runs unless requested", async () => {
    const labels = join(whole.folder, 'labels.json');
    const listed = async (...flags: string[]) => (await ragen(workspace.folder, ['runs', ...flags])).stdout;
    writeFileSync(labels, JSON.stringify({ schema: 1, name: 'the whole one', tags: ['paper', 'lr'] }));
    expect(await listed()).toMatch(new RegExp(`^${basename(whole.folder)} .* the whole one #paper #lr$`, 'm'));
    expect(await listed('--tag', 'paper')).toContain('the whole one');
    expect(await listed('--tag', 'other')).not.toContain('the whole one');
    writeFileSync(labels, JSON.stringify({ schema: 1, archived: true }));
    expect(await listed()).not.toContain(basename(whole.folder));
    expect(await listed('--archived')).toMatch(new RegExp(`^${basename(whole.folder)} .*\\(archived\\)$`, 'm'));
    rmSync(labels);
  });

  test('explains how to start in an empty folder, and returns an empty list', async () => {
    const empty = join(workspace.folder, 'models');
    expect((await ragen(empty, ['runs'])).stdout).toBe(
      'No runs here yet; to start one, run: ragen train --config-name quickstart\n',
    );
    expect((await document(empty, ['runs'])).answer).toEqual([]);
    expect((await document<unknown[]>(empty, ['runs', '--workspace', workspace.folder])).answer.length).toBeGreaterThan(
      0,
    );
  });
});

test('presets lists the workspace’s own configurations with the bundled ones', async () => {
  const { answer } = await document<{ name: string; description: string }[]>(workspace.folder, ['presets']);
  expect(answer.find(({ name }) => name === 'words')?.description).toBe('A run of seconds.');
  expect(answer.map(({ name }) => name)).toContain('quickstart');
});

describe('eval', () => {
  test('by name plays the validation once, and returns what training measures before its first step', async () => {
    const { code, stderr, answer } = await document<Summary>(workspace.folder, ['eval', '--config-name', 'words']);
    expect(code, stderr).toBe(0);
    expect(answer.validation).toEqual([whole.validation[0]]);
    expect(answer).toMatchObject({ state: 'finished', steps: 0 });
    expect(readRun(answer.folder)).toMatchObject({ checkpoints: [], metrics: [{ step: 0 }] });
    const refused = await document<{ error: { message: string } }>(workspace.folder, ['eval', '--run', answer.run]);
    expect(refused.code).toBe(1);
    expect(refused.answer.error.message).toMatch(/^eval: run .* has no checkpoint: /);
  });

  test('of a run’s checkpoint uses the weights and the configuration of the run', async () => {
    appendFileSync(join(workspace.folder, 'config/words.yaml'), '\nseed:\n  val: 777\n'); // changed since
    const last = await document<Summary>(workspace.folder, ['eval', '--run', whole.run]);
    expect(last.code, last.stderr).toBe(0);
    expect(last.answer.run).toMatch(/-eval-of-words-\w{4}-step-\d+-\w{4}$/);
    const episodesAt = (run: string, step: number) =>
      readRun(run)
        .episodes.filter(e => e.mode === 'val' && e.step === step)
        .map(({ seed, tokens }) => ({ seed, prompt: tokens.ids.slice(0, tokens.mask.indexOf(1)) }));
    expect(episodesAt(last.answer.folder, 0)).toEqual(episodesAt(whole.folder, 4));
    const second = await document<Summary>(workspace.folder, [
      'eval',
      '--run',
      whole.run,
      '--checkpoint',
      'step-000002',
      'seed.val=9',
    ]);
    expect(second.code, second.stderr).toBe(0);
    expect(readRun(second.answer.folder).episodes[0].seed).toBe(9);
    const text = readFileSync(join(second.answer.folder, 'manifest.json'), 'utf8');
    expect((JSON.parse(text) as { model: { path: string } }).model.path).toBe(
      join(whole.folder, 'checkpoints/step-000002'),
    );
  });
});

describe('resume', () => {
  test('of a finished run ends at once with its summary, and changes nothing', async () => {
    const before = results(whole.folder);
    const { code, stderr, answer } = await document<Summary>(workspace.folder, ['resume', whole.run]);
    expect(code, stderr).toBe(0);
    expect(answer).toEqual({ ...whole, wall_s: expect.closeTo(whole.wall_s, 3) });
    expect(results(whole.folder)).toEqual(before);
    expect(readRun(whole.folder).status).toMatchObject({ state: 'finished', step: 4 });
  });

  test('from an earlier checkpoint is refused, and names what would be discarded, until the user chooses', async () => {
    const { events } = readRun(whole.folder);
    const before = results(whole.folder);
    const lost = events.filter(({ step }) => step > 2).length;
    const refused = await document<{ error: { message: string } }>(workspace.folder, [
      ...['resume', whole.run, '--from', '2'],
    ]);
    const command = `ragen resume ${whole.run} --from 2`;
    expect([refused.code, refused.answer.error.message]).toEqual([
      1,
      `resuming run ${whole.run} from step 2 would discard 2 steps (3 to 4), 2 checkpoints and ${lost} events: keep them and start a new run with ${command} --fork, or remove them with ${command} --discard`,
    ]);
    const both = await document<{ error: { message: string } }>(workspace.folder, [
      ...['resume', whole.run, '--from', '2', '--fork', '--discard'],
    ]);
    expect(both.answer.error.message).toBe('--fork keeps the run and --discard shortens it: leave one of them out');
    expect(results(whole.folder)).toEqual(before);
  });

  test('with --fork starts a new run that names its parent, trains the same steps, and leaves the parent as it is', async () => {
    const before = results(whole.folder);
    const forked = await document<Summary>(workspace.folder, ['resume', whole.run, '--from', '2', '--fork']);
    expect(forked.code, forked.stderr).toBe(0);
    const manifest = JSON.parse(readFileSync(join(forked.answer.folder, 'manifest.json'), 'utf8')) as Manifest;
    expect(manifest.parent).toEqual({ run: whole.run, step: 2 });
    expect(manifest.name).toMatch(/-from-2$/);
    expect(readRun(forked.answer.folder).metrics.map(({ step }) => step)).toEqual([3, 4]);
    expect(results(forked.answer.folder).weights).toEqual(before.weights);
    expect(results(whole.folder)).toEqual(before);
  });

  test('from an earlier checkpoint with --discard removes the later steps, and trains them again with the same results', async () => {
    const before = results(whole.folder);
    const args = ['resume', whole.run, '--from', '2'];
    const detached = await document(workspace.folder, [...args, '--discard', '--detach']);
    expect(detached.code, detached.stderr).toBe(0);
    await kill(whole.folder); // at any time: the later checkpoints were removed together with their steps
    const { metrics, checkpoints } = readRun(whole.folder);
    expect(metrics.map(({ step }) => step)).toEqual(metrics.map((_, i) => i));
    expect(checkpoints.filter(name => /^step-/.test(name)).length).toBeLessThanOrEqual(metrics.length - 1);
    const { code, stderr } = await document<Summary>(workspace.folder, ['resume', whole.run]);
    expect(code, stderr).toBe(0);
    expect(results(whole.folder)).toEqual(before);
  });
});

test('a client sees the latest training success when there is no validation, may request a checkpoint, and is answered at once while the model computes', async () => {
  const run = await startDetached(workspace.folder, [
    ...[
      'trainer.total_training_steps=1000',
      'trainer.save_freq=-1',
      'trainer.test_freq=-1',
      'trainer.val_before_train=false',
    ],
  ]);
  const watcher = await joinRun(run);
  await until('some steps pass', () => new Set(watcher.statuses.map(({ status }) => status.success)).size > 2);
  const { folder } = await watcher.link.sendRequest(askCheckpoint, null);
  expect(folder).toMatch(/^checkpoints\/step-\d{6}$/);
  expect(JSON.parse(readFileSync(join(run, folder, 'checkpoint.json'), 'utf8'))).toMatchObject({
    step: Number(folder.slice(-6)),
  });
  for (const phase of ['rollout', 'update', 'rollout', 'update']) {
    const { step } = await until(`a phase ${phase}`, () => {
      const { status } = watcher.statuses.at(-1)!;
      return status.phase === phase && status.state === 'running' && status;
    });
    const paused = await watcher.link.sendRequest(pause, null);
    expect(paused.state).toBe('paused');
    // Not after many of the 1000 steps. A step takes some 30 ms, and the status that was seen may be older than that.
    expect(paused.step - step).toBeLessThanOrEqual(20);
    await watcher.link.sendRequest(resume, null);
  }
  await watcher.link.sendRequest(stop, null);
  await until('it ends', () => !leaseOf(run));
  expect(statusOf(run)!.state).toBe('stopped');
  const successAt = new Map(readRun(run).metrics.map(line => [line.step, line['train/Words/success']]));
  const received = watcher.statuses.filter(({ status }) => status.step > 0);
  expect(received.map(({ status }) => status.success)).toEqual(
    received.map(({ status }) => successAt.get(status.step)),
  );
});
