// Errors of a run, one case each: exit code 1, one sentence in the terminal that names the location and the remedy, the
// same in the JSON document, and a run folder, if there is one, that is readable to its last line.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  document,
  fillMounted,
  kill,
  killAll,
  leaseOf,
  mountSmall,
  ragen,
  readRun,
  resizeMounted,
  runsOf,
  startDetached,
  statusOf,
  unmount,
  until,
} from '../../support/terminal';
import { makeWorkspace, wordsEnvironment, writeModel } from '../../support/workspace';
import type { Workspace } from '../../support/workspace';

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});
beforeEach(() => rmSync(join(workspace.folder, '.ragen'), { recursive: true, force: true }));

interface Refusal {
  error: { message: string; key?: string; file?: string; line?: number };
}

const train = (...overrides: string[]): string[] => ['train', '--config-name', 'words', ...overrides];

/** The message of a command that is refused before a run exists. */
async function refused(args: string[]): Promise<Refusal['error']> {
  const { code, stderr, answer } = await document<Refusal>(workspace.folder, args);
  expect(stderr).toBe(`${answer.error.message}\n`);
  expect(answer.error.message).not.toContain('\n');
  expect(code).toBe(1);
  expect(runsOf(workspace.folder)).toEqual([]);
  return answer.error;
}

/** The message with which a run pauses itself while its trainer lives. */
async function waiting(overrides: string[]): Promise<{ message: string; run: string }> {
  const run = await startDetached(workspace.folder, overrides);
  const { error } = await until('the run waits', () => {
    const status = statusOf(run);
    return status?.state === 'paused' && status.error !== undefined && status;
  });
  const matching = readRun(run).events.filter(({ kind, message }) => kind === 'state' && message.startsWith('paused'));
  expect(matching.map(({ message }) => message)).toEqual([`paused: ${error}`]);
  expect(error).not.toContain('\n');
  return { message: error!, run };
}

/** Like `waiting`, and then stops the run: a waiting run must be stoppable. */
async function waitedInVain(...overrides: string[]): Promise<{ message: string; run: string }> {
  const waited = await waiting(overrides);
  process.kill(leaseOf(waited.run)!.pid, 'SIGTERM');
  await until('the run is stopped', () => statusOf(waited.run)?.state === 'stopped' && !leaseOf(waited.run));
  return waited;
}

/** The message of a run that fails. */
async function failed(args: string[], shell?: string): Promise<{ message: string; run: string }> {
  const { code, stderr, answer } = await document<Refusal & { run: string; state: string }>(
    workspace.folder,
    args,
    shell,
  );
  const { message } = answer.error;
  expect(message).not.toContain('\n');
  expect(stderr.split('\n').filter(line => line === message)).toEqual([message]);
  expect(stderr).not.toMatch(/^\s+at /m);
  expect(code).toBe(1);
  const run = runsOf(workspace.folder).at(-1)!;
  expect(readRun(run).status).toMatchObject({ state: 'failed', error: message });
  expect(leaseOf(run)).toBeNull();
  return { message, run };
}

describe('configuration', () => {
  test('results of a sweep that has no runs are not saved', async () => {
    const results = join(workspace.folder, 'results');
    const { message } = await refused(['claims', 'claim_1_collapse', '--save', results]);
    expect(message).toMatch(/^claims: sweep claim_1_collapse has no finished run in .*: run ragen sweep /);
    expect(existsSync(results)).toBe(false);
  });

  test('an unknown key is refused, with the key that was meant', async () => {
    const { message, key } = await refused(train('trainer.total_trainin_steps=3'));
    expect(message).toContain('trainer.total_trainin_steps');
    expect(message).toContain('did you mean total_training_steps?');
    expect(key).toBe('trainer.total_trainin_steps');
  });

  test('an unknown key in a file is refused, with its line', async () => {
    const file = workspace.write('config/typo.yaml', '# x\ndefaults:\n  - words\n\ntrainer:\n  test_frequ: 3\n');
    const error = await refused(['train', '--config-name', 'typo']);
    expect(error).toMatchObject({ key: 'trainer.test_frequ', file, line: 6 });
    expect(error.message).toContain('typo.yaml:6:');
  });

  test('a wrong type is refused', async () => {
    const { message } = await refused(train('trainer.total_training_steps=many'));
    expect(message).toMatch(/trainer\.total_training_steps is "many".*an integer ≥ 0/);
  });

  test('several problems are reported in one sentence each', async () => {
    const { code, stderr, answer } = await document<Refusal & { error: { problems: unknown[] } }>(
      workspace.folder,
      train('trainer.total_training_steps=many', 'workbench.device=tpu'),
    );
    expect(code).toBe(1);
    expect(stderr.trim().split('\n').length).toBe(2);
    expect(answer.error.problems.length).toBe(2);
  });

  test('no configuration, and one that does not exist, are refused', async () => {
    expect((await refused(['train'])).message).toMatch(/^config: no configuration is given/);
    expect((await refused(['train', '--config-name', 'word'])).message).toMatch(/word.*words/);
  });

  test('an unknown option is refused', async () => {
    const { code, answer, stderr } = await document<Refusal>(workspace.folder, ['train', '--fast']);
    expect(code).toBe(1);
    expect(stderr).toBe("error: unknown option '--fast'\n");
    expect(answer.error.message).toContain('--fast');
  });

  test('a run that does not exist is refused', async () => {
    expect((await refused(['resume', 'nothing'])).message).toMatch(/^store: there is no run nothing/);
    expect((await refused(['eval', '--run', 'nothing'])).message).toMatch(/^store: there is no run nothing/);
  });
});

describe('model', () => {
  /** Overrides that name a model folder made faulty by `change`. */
  const model = (name: string, change: (folder: string) => void): string => {
    const folder = join(workspace.folder, 'models', name);
    writeModel(folder);
    change(folder);
    return `model_path=models/${name}`;
  };
  const weightsOf = (folder: string): string => join(folder, 'model.safetensors');

  test('a missing folder is refused', async () => {
    const { message, key } = await refused(train('model_path=models/none'));
    expect(message).toMatch(/^config: model_path is "models\/none".*config\.json/);
    expect(key).toBe('model_path');
  });

  test('a config.json that is not JSON is refused', async () => {
    const { message } = await refused(
      train(model('no-json', folder => writeFileSync(join(folder, 'config.json'), '{'))),
    );
    expect(message).toMatch(/no-json.config\.json: the file is not valid JSON/);
  });

  test('truncated weights are refused', async () => {
    const change = (folder: string): void =>
      writeFileSync(weightsOf(folder), readFileSync(weightsOf(folder)).subarray(0, 5000));
    expect((await refused(train(model('short', change)))).message).toContain(join('short', 'model.safetensors'));
  });

  test('a missing tokenizer is refused', async () => {
    const { message } = await refused(train(model('mute', folder => rmSync(join(folder, 'tokenizer.json')))));
    expect(message).toMatch(/mute: cannot read tokenizer\.json/);
  });

  test('a non-finite weight is refused', async () => {
    const change = (folder: string): void => {
      const bytes = readFileSync(weightsOf(folder));
      bytes.writeFloatLE(NaN, bytes.length - 4);
      writeFileSync(weightsOf(folder), bytes);
    };
    expect((await failed(train(model('nan', change)))).message).toMatch(/tensor .* is damaged \(element \d+ is NaN\)/);
  });

  test('a policy that becomes non-finite: its steps change nothing, and too many of them end the run', async () => {
    const { message, run } = await failed(
      train(
        ...['actor_rollout_ref.actor.optim.lr=1e30', 'trainer.total_training_steps=9', 'trainer.save_freq=1'],
        ...['trainer.test_freq=-1', 'workbench.max_skipped_steps=2'],
      ),
    );
    expect(message).toMatch(
      /^engine: the policy's logits are not finite \(row .*\), because the policy's weights have diverged: .*lower learning rate \(3 consecutive steps changed no weights; workbench\.max_skipped_steps is 2\)/,
    );
    const { metrics, events, checkpoints } = readRun(run);
    expect(metrics.map(({ step, 'train/skipped_step': skipped }) => [step, skipped])).toEqual([
      ...[0, 1].map(step => [step, undefined]),
      ...[2, 3, 4].map(step => [step, 1]),
    ]);
    expect(checkpoints).toEqual(['step-000001']);
    const matching = events.filter(({ message }) => message.startsWith('step 2 changed no weights: engine: '));
    expect(matching).toMatchObject([{ kind: 'warning', step: 1 }]);
    expect(events.filter(({ message }) => message.includes('changed no weights: '))).toEqual(matching); // once
  });

  test('a context too short for the first prompt is refused', async () => {
    const { message } = await failed(train('actor_rollout_ref.rollout.max_model_len=16'));
    expect(message).toMatch(
      /^config: environment Words returned an observation that is too long \(turn 1, seed \d+, member 0\), because the prompt of \d+ tokens and a response of response_length 12 exceed actor_rollout_ref\.rollout\.max_model_len 16: raise max_model_len, lower response_length, or shorten the observation$/,
    );
  });

  test("a context longer than the model's positions is refused", async () => {
    const { message } = await refused(train('actor_rollout_ref.rollout.max_model_len=4000'));
    expect(message).toMatch(/max_model_len is 4000, but models\/random supports only 512 positions: use at most 512/);
  });
});

describe('environment', () => {
  const few = [
    'es_manager.val.env_groups=2',
    'es_manager.val.env_configs.n_groups=[2]',
    'workbench.step_timeout_ms=100',
  ];
  const environment = (name: string, step: string): string => {
    workspace.write(`environments/${name}.ts`, wordsEnvironment(step));
    return `custom_envs.Words.env_type=environments/${name}.ts`;
  };

  test('a missing file is refused', async () => {
    const { message } = await refused(train('custom_envs.Words.env_type=environments/none.ts'));
    expect(message).toMatch(/^config: custom_envs\.Words\.env_type is environments\/none\.ts.*frozen_lake/);
  });

  test('code that does not compile is refused, with its location', async () => {
    workspace.write('environments/syntax.ts', 'export default {\n  oops oops\n};\n');
    expect((await refused(train('custom_envs.Words.env_type=environments/syntax.ts'))).message).toContain(
      'syntax.ts:2',
    );
  });

  test('code that throws when it is loaded is refused', async () => {
    workspace.write('environments/loads.ts', "throw new Error('no maps here');\n");
    const { message } = await refused(train('custom_envs.Words.env_type=environments/loads.ts'));
    expect(message).toMatch(/^environment Words \(.*loads\.ts.*no maps here/);
  });

  test('a step that throws is reported with file and line', async () => {
    const { message, run } = await waitedInVain(environment('throws', "throw new Error('the door is stuck');"));
    expect(message).toMatch(/^environment Words \(.*throws\.ts:\d+.*the door is stuck/);
    expect(message).toMatch(
      /: fix the file and save it \(\d+ of 8 episodes failed; workbench\.max_failed_episodes_share is 0\.25\), then resume the run$/,
    );
    const [event] = readRun(run).events.filter(({ kind }) => kind === 'environment_error');
    expect(event).toMatchObject({ step: 0, data: { tag: 'Words', kind: 'threw' } });
  });

  test('a step that never ends is reported', async () => {
    const { message } = await waitedInVain(environment('loops', 'for (;;);'), ...few);
    expect(message).toMatch(/^environment Words \(.*loops\.ts.*100 ms/);
  });

  test('a promise that is never settled is reported', async () => {
    const waits = environment('waits', 'await new Promise(() => {});');
    expect((await waitedInVain(waits, ...few)).message).toMatch(/waits\.ts.*100 ms/);
  });

  test('a reward that is not a number is reported', async () => {
    const nan = environment(
      'nan',
      'return { observation: "", reward: NaN, terminated: true, truncated: false, info: {} };',
    );
    expect((await waitedInVain(nan)).message).toMatch(/^environment Words \(.*nan\.ts.*reward.*NaN/);
  });

  test('failures up to the allowed share end only their episodes, which are excluded from training', async () => {
    // A group has 4 members: one of them is a quarter, which does not exceed 0.25.
    const one = environment('one', "if (member === 3 && mode === 'train') throw new Error('member 3');");
    const { code, answer, stderr } = await document<{ folder: string }>(
      workspace.folder,
      train(one, 'trainer.total_training_steps=2', 'trainer.test_freq=-1'),
    );
    expect(code, stderr).toBe(0);
    const { metrics, episodes, events } = readRun(answer.folder);
    const broken = episodes.filter(({ error }) => error !== undefined);
    expect(broken.length).toBeGreaterThan(0);
    expect(broken.every(({ member, kept, advantage }) => member === 3 && kept === false && advantage === null)).toBe(
      true,
    );
    expect(broken[0].error).toMatch(/member 3/);
    for (const line of metrics.filter(({ step }) => step > 0))
      expect(line['train/env_error_rate']).toBe(broken.filter(({ step }) => step === line.step).length / 8);
    const matching = events.filter(({ kind }) => kind === 'environment_error');
    // The first failure of a rollout is reported at once and the others together at its end.
    expect(matching.length).toBeLessThanOrEqual(2 * new Set(broken.map(({ step }) => step)).size);
    expect(matching.reduce((sum, { data }) => sum + Number(data?.episodes), 0)).toBe(broken.length);
  });

  test('with a share of 0 one failure pauses the run, which continues with identical results once its environment is fixed and it is resumed', async () => {
    const mended = environment('mended', "if (mode === 'train' && seed >= 10004) throw new Error('not yet written');");
    const { message, run } = await waiting([mended, 'workbench.max_failed_episodes_share=0']);
    expect(message).toMatch(
      /not yet written.*\(\d of 8 episodes failed; workbench\.max_failed_episodes_share is 0\), then resume the run$/,
    );
    expect(readRun(run)).toMatchObject({ status: { step: 2 }, checkpoints: ['step-000002'] });
    environment('mended', '');
    await until('the save is used', () => readRun(run).events.some(({ kind }) => kind === 'environment_reload'));
    expect(statusOf(run)!.state).toBe('paused');
    const { code, stderr } = await document(workspace.folder, ['resume', basename(run)]);
    expect(code, stderr).toBe(0);
    const { metrics, events } = readRun(run);
    expect(metrics.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4]);
    expect(events.some(({ kind }) => kind === 'resume')).toBe(false); // the same trainer continued
    expect(statusOf(run)).toMatchObject({ state: 'finished', step: 4 });
    expect(statusOf(run)!.error).toBeUndefined();
  });
});

describe('run folder', () => {
  test('a second trainer is refused while the first lives; a killed one is reported, and its run may be resumed', async () => {
    const following = document<Refusal>(
      workspace.folder,
      train('trainer.total_training_steps=100000', 'trainer.save_freq=-1'),
    );
    const run = await until('a run trains', () =>
      runsOf(workspace.folder).find(folder => (statusOf(folder)?.step ?? 0) > 0),
    );
    const { pid } = leaseOf(run)!;
    const second = await document<Refusal>(workspace.folder, ['resume', basename(run)]);
    expect(second.code).toBe(1);
    expect(second.stderr).toBe(`${second.answer.error.message}\n`);
    expect(second.answer.error.message).toContain(`run ${basename(run)} is already being trained by process ${pid}`);
    // a second trainer that starts directly, without the CLI's own check: the lease decides
    const trainer = join(__dirname, '../../../dist/trainer.cjs');
    expect(() =>
      execFileSync(process.execPath, [trainer, '--run', run, '--resume'], { cwd: workspace.folder, stdio: 'pipe' }),
    ).toThrow(`is already being trained by process ${pid}`);
    expect(leaseOf(run)?.pid).toBe(pid);
    const { step } = statusOf(run)!;
    await until('the first goes on', () => statusOf(run)!.step > step);

    await kill(run);
    const { code, stderr, answer } = await following;
    expect(code).toBe(1);
    expect(answer.error.message).toMatch(
      /^trainer of .*: it was killed \(SIGKILL\), most likely .* memory ran out: .* \(log: .*trainer\.log; resume it with ragen resume .*\)$/,
    );
    expect(stderr.trimEnd().split('\n').at(-1)).toBe(answer.error.message);
    expect(readRun(run).metrics.length).toBeGreaterThan(step);
  });

  test('an invalid or damaged checkpoint is reported before anything is truncated', async () => {
    const { answer } = await document<{ folder: string }>(workspace.folder, train('trainer.total_training_steps=1'));
    const { metrics, checkpoints, status } = readRun(answer.folder);
    const resumed = async (...more: string[]): Promise<string> => {
      const {
        code,
        stderr,
        answer: refusal,
      } = await document<Refusal>(workspace.folder, ['resume', basename(answer.folder), ...more]);
      expect(code).toBe(1);
      expect(stderr).toBe(`${refusal.error.message}\n`);
      return refusal.error.message;
    };
    expect(await resumed('--checkpoint', 'newest')).toBe(
      'store: newest is not a checkpoint: name one like step-000100',
    );
    expect(await resumed('--checkpoint', 'step-000009')).toMatch(/step-000009.*does not exist/);
    const weights = join(answer.folder, 'checkpoints', checkpoints[0], 'model.safetensors');
    const bytes = readFileSync(weights);
    bytes[bytes.length - 1] ^= 1;
    writeFileSync(weights, bytes);
    expect(await resumed('--checkpoint', checkpoints[0])).toMatch(/model\.safetensors does not match its checksum/);
    expect(await resumed()).toMatch(/model\.safetensors does not match its checksum.*run .* has no intact checkpoint/);
    expect(readRun(answer.folder)).toMatchObject({ metrics, status });
  });
});

describe('full disk', () => {
  const mounted =
    (kilobytes: number, check: (folder: string) => Promise<void>) => async (context: { skip(note: string): void }) => {
      const folder = join(workspace.folder, '.ragen');
      if (!mountSmall(folder, kilobytes)) return context.skip('mounting a small file system is not permitted here');
      try {
        await check(folder);
      } finally {
        await killAll(workspace.folder);
        unmount(folder);
      }
    };

  test(
    'in the middle of a run: the run pauses, reports it once, stays readable, and continues once there is space',
    mounted(2000, async folder => {
      const many = ['trainer.total_training_steps=1000', 'workbench.keep_checkpoints=1000', 'trainer.test_freq=-1'];
      await document(workspace.folder, [...train(...many), '--detach']);
      const [run] = runsOf(workspace.folder);
      const waits = () => statusOf(run)?.state === 'paused';
      await until('the disk is full', waits);
      const { error, step } = statusOf(run)!;
      expect(error).toMatch(/^store: cannot .* \(ENOSPC\): the disk is full: free space$/);
      const before = readRun(run);
      expect(before.metrics.map(({ step }) => step)).toEqual(before.metrics.map((_, i) => i));
      expect(before.checkpoints.length).toBeGreaterThan(0);
      const { stdout } = await ragen(workspace.folder, ['runs']);
      expect(stdout).toContain('paused');
      resizeMounted(folder, 200_000); // far more than the run writes before this test fills the disk again
      await until('it goes on', () => statusOf(run)!.step > step && !waits());
      expect(statusOf(run)!.error).toBeUndefined();
      const matching = readRun(run).events.filter(({ message }) => message.startsWith('paused: '));
      expect(matching.map(({ message }) => message)).toEqual([`paused: ${error}`]);
      fillMounted(folder);
      await until('the disk is full once more', waits);
      process.kill(leaseOf(run)!.pid, 'SIGTERM'); // as an interruption by the user
      await until('it has ended', () => leaseOf(run) === null);
      expect(statusOf(run)).toMatchObject({ state: 'failed', error: expect.stringContaining('ENOSPC') as string });
    }),
  );

  test(
    'from the start: no run is created',
    mounted(4, async folder => {
      fillMounted(folder);
      const { code, stderr, answer } = await document<Refusal>(workspace.folder, train());
      expect(code).toBe(1);
      expect(stderr).toBe(`${answer.error.message}\n`);
      expect(answer.error.message).toMatch(/\(ENOSPC\): the disk is full/);
      expect(runsOf(workspace.folder)).toEqual([]);
    }),
  );

  test.skipIf(process.platform === 'win32')('a file larger than the limit is reported', async () => {
    // 100 blocks of 1 KiB: the weights of a checkpoint do not fit
    const { message } = await failed(train('trainer.total_training_steps=2'), 'ulimit -f 100');
    expect(message).toMatch(/^store: cannot write the checkpoint .*step-000001 \(EFBIG\)/);
  });
});
