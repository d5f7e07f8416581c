// `ragen doctor` in the CLI: the machine alone, and runs that fit, do not fit, or are impossible.
import { readFileSync } from 'node:fs';
import { platform } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RunReport } from '../../../../extension/trainer/plan/run-plan';
import { isolationMissing } from '../../envs/deepcoder/isolation';
import { nodeFits } from '../../../../extension/cli/machine/report/machine-report';
import type { MachineReport } from '../../../../extension/cli/machine/report/machine-report';
import { document, ragen, readRun } from '../../../support/terminal';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';
import { reinterpret } from '../../../support/partial';

interface Found {
  machine: MachineReport;
  run: RunReport | null;
}

let workspace: Workspace;
/** A model of more than 400 billion parameters in two layers; only its config.json exists. */
const huge = {
  ...{ model_type: 'llama', vocab_size: 32_000, hidden_size: 131_072, intermediate_size: 524_288 },
  ...{ num_hidden_layers: 2, num_attention_heads: 1024, num_key_value_heads: 8, max_position_embeddings: 4096 },
  ...{ rms_norm_eps: 1e-5, torch_dtype: 'bfloat16' },
};

beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write('models/huge/config.json', JSON.stringify(huge));
});
afterAll(() => workspace.remove());

const doctor = (...args: string[]) => document<Found>(workspace.folder, ['doctor', ...args]);
const refusal = async (...args: string[]): Promise<string> => {
  const { code, stderr, answer } = await doctor(...args);
  expect(code).toBe(1);
  const { message } = reinterpret<{ error: { message: string } }>(answer).error;
  expect(stderr).toBe(`${message}\n`);
  return message;
};

test('the machine report has versions, cores, memory, disk and providers', async () => {
  const { code, stderr, answer } = await doctor();
  expect(stderr).toBe('');
  expect(code).toBe(0);
  const { machine, run } = answer;
  expect(run).toBeNull();
  expect(machine.node).toEqual({ version: process.versions.node, required: '>=20', fits: true });
  expect(machine.cpu.usable).toBeGreaterThan(0);
  expect(machine.memory.available).toBeGreaterThan(0);
  expect(machine.memory.available).toBeLessThanOrEqual(machine.memory.total);
  expect(machine.disk.free).toBeGreaterThan(0);
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules/onnxruntime-node/package.json'), 'utf8')) as {
    version: string;
  };
  expect(machine.onnxruntime.version).toBe(version);
  if (platform() === 'linux' && (await isolationMissing()) === undefined)
    expect(machine.optional.find(({ name }) => name === 'bubblewrap')!.found).toMatch(
      /^bubblewrap [\d.]+: namespaces and a system-call filter; .*polling every 50 ms/,
    );
  const { providers, auto } = machine.onnxruntime;
  expect(providers.find(({ provider }) => provider === 'cpu')).toMatchObject({ installed: true, self_check: null });
  expect(auto === 'cpu' || providers.some(({ provider, self_check }) => provider === auto && self_check?.faster)).toBe(
    true,
  );
});

test('an old Node version is detected', () => {
  expect(nodeFits('18.20.4', '>=20')).toBe(false);
  expect(nodeFits('20.0.0', '>=20')).toBe(true);
  expect(nodeFits('24.1.0', '>=20')).toBe(true);
});

describe('a run that fits', () => {
  test('has a consistent plan, and the largest micro-batch divides the mini-batch', async () => {
    const { code, stderr, answer } = await doctor('--config-name', 'words');
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const run = answer.run!;
    expect(run).toMatchObject({
      config_name: 'words',
      model: { path: 'models/random', trained: 'all' },
      fits: true,
      remedy: null,
      notes: [],
    });
    expect(run.peak).toEqual({ phase: 'checkpoint', bytes: run.rows.reduce((sum, { bytes }) => sum + bytes, 0) });
    expect(run.phases.at(-1)).toEqual({ phase: 'checkpoint', held: run.peak.bytes });
    expect(run.phases.map(({ phase }) => phase)).not.toContain('critic update');
    expect(run.available).toBeGreaterThan(run.peak.bytes);
    expect(run.largest_micro_batch!.tokens % 400).toBe(0);
    expect(run.largest_micro_batch!.ppo_micro_batch_size_per_gpu).toBe(4);
  });

  test('is planned as configured: adapters, a critic, evaluation only', async () => {
    const { answer: adapted } = await doctor('--config-name', 'words', 'lora.rank=2', 'algorithm.adv_estimator=gae');
    expect(adapted.run!.model.trained).toBe('adapters');
    expect(adapted.run!.rows.map(({ what }) => what)).toEqual(
      expect.arrayContaining(['base', 'adapters', 'critic optimizer']),
    );
    const { answer: quantized } = await doctor(
      '--config-name',
      'words',
      'lora.rank=2',
      'workbench.rollout_quantization=int8',
    );
    expect(quantized.run!.notes).toEqual([expect.stringContaining('rollout_is is auto, which weights')]);
    const { answer: played } = await doctor('--config-name', 'words', 'trainer.val_only=true');
    expect(played.run!.peak.phase).toBe('rollout');
    expect(played.run!.largest_micro_batch).toEqual({ tokens: 0, ppo_micro_batch_size_per_gpu: 0 });
  });

  test('is printed as a table, phase by phase', async () => {
    const { code, stdout } = await ragen(workspace.folder, ['doctor', '--config-name', 'words']);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Node +\d/);
    expect(stdout).toMatch(/^words with models\/random: [\d,]+ parameters, all trained$/m);
    expect(stdout).toMatch(/^ +keys and values +\d+ MiB {2}\(8 episodes \+ 8 in the batch\) × 400 tokens × 64 bytes$/m);
    expect(stdout).toMatch(
      /^Peak: \d+ MiB in the checkpoint; .* available\nLargest micro-batch that fits: [\d,]+ tokens \(ppo_micro_batch_size_per_gpu=4\)\nIt fits\.\nA step: about [\d.]+ s, including [\d.]+ s rollout; all steps: [\d.]+ s \(rough estimate: .*\)\n$/m,
    );
  });

  test('names the image tokens of its pictures', async () => {
    const { code, answer } = await doctor('--config-name', 'quickstart-vision');
    expect(code).toBe(0);
    expect(answer.run!.pictures).toEqual([
      { tag: 'QuickVisualLake', width: 112, height: 112, assumed: false, tokens: 16, shown: 5 },
    ]);
    const { stdout } = await ragen(workspace.folder, ['plan', '--config-name', 'quickstart-vision']);
    expect(stdout).toMatch(/^note: config: custom_envs\.QuickVisualLake: a picture of .* takes 16 image tokens, /m);
    expect(stdout).toMatch(/^ +image features of a call +\d+ MiB {2}2 × 256 episodes × 80 image tokens × /m);
  });

  test("of a model without a configuration is limited to the model's positions", async () => {
    const { code, answer } = await doctor('--model', 'models/random', 'lora.rank=4');
    expect(code).toBe(0);
    expect(answer.run).toMatchObject({ config_name: 'base', model: { path: 'models/random' } });
    expect(answer.run!.notes.join()).toMatch(
      /max_model_len is lowered from 3600 to 512, the maximum number of positions of models\/random$/,
    );
  });
});

describe('a run that does not fit', () => {
  test('of a model that no change makes fit is reported as such, from config.json alone', async () => {
    const { code, stderr, answer } = await doctor('--config-name', 'words', '--model', 'models/huge');
    expect(code).toBe(1);
    const run = answer.run!;
    expect(run.fits).toBe(false);
    expect(run.model.parameters).toBeGreaterThan(4e11);
    expect(run.rows.find(({ what }) => what === 'weights')!.bytes).toBe(4 * run.model.parameters!);
    expect(run.largest_micro_batch).toEqual({ tokens: 0, ppo_micro_batch_size_per_gpu: 0 });
    expect(stderr).toBe(`${run.remedy}\n`);
    expect(run.remedy).toMatch(
      /^doctor: the run needs [\d.]+ GiB in its checkpoint, but [\d.]+ GiB is available: even with .*lora\.rank=16 .* it needs [\d.]+ GiB, so use a smaller model or a machine with more memory$/,
    );
    const { answer: adapted } = await doctor('--config-name', 'words', '--model', 'models/huge', 'lora.rank=8');
    expect(adapted.run!.rows.find(({ what }) => what === 'base')!.bytes).toBe(2 * run.model.parameters!); // bfloat16
  });

  test('gets the change that makes it fit, and then fits', async () => {
    const episodes = 2 ** 16;
    const large = [
      ...['--config-name', 'words', `ppo_mini_batch_size=${episodes}`, `es_manager.train.env_groups=${episodes}`],
      ...['es_manager.train.group_size=2', `es_manager.train.env_configs.n_groups=[${episodes}]`],
      ...['actor_rollout_ref.actor.ppo_max_token_len_per_gpu=100000000'],
    ];
    const { code, stderr, answer } = await doctor(...large, `micro_batch_size_per_gpu=${episodes}`);
    expect(code).toBe(1);
    const run = answer.run!;
    expect(stderr).toBe(`${run.remedy}\n`);
    const change = /: set (micro_batch_size_per_gpu=\d+), which needs [\d.]+ [MG]iB$/.exec(run.remedy!)![1];
    expect(change).toBe(`micro_batch_size_per_gpu=${run.largest_micro_batch!.ppo_micro_batch_size_per_gpu}`);
    const { answer: changed } = await doctor(...large, change);
    expect(changed.run!.peak.bytes).toBeLessThanOrEqual(run.available);
  });
});

test('a run that cannot be planned gives one sentence', async () => {
  workspace.write('models/mamba/config.json', JSON.stringify({ ...huge, model_type: 'mamba' }));
  const cases = [
    [
      ['--model', 'nowhere'],
      /^--model is "nowhere", but there is no config\.json in .*: give a folder \(with config\.json/,
    ],
    [
      ['--model', 'models/mamba'],
      /mamba.config\.json: model_type is "mamba", which is not supported: use a model of type/,
    ],
    [['--config-name', 'absent'], /^config: there is no configuration "absent": use one of .*words/],
    [['--config-name', 'words', 'lora.rnak=1'], /^config: lora\.rnak is not in the configuration: did you mean/],
    [
      ['--config-name', 'words', 'actor_rollout_ref.rollout.max_model_len=513'],
      /max_model_len is 513, but models\/random supports only 512 positions: use at most 512$/,
    ],
    [
      ['--config-name', 'words', 'actor_rollout_ref.model.lora_adapter_path=nowhere'],
      /nowhere: the folder has no adapter_config\.json: choose the folder of a LoRA adapter/,
    ],
  ] as const;
  await Promise.all(cases.map(async ([args, sentence]) => expect(await refusal(...args)).toMatch(sentence)));
});

describe('a run', () => {
  test('logs its planned memory before it loads its model, as planned by doctor', async () => {
    const { answer } = await document<{ folder: string }>(workspace.folder, [
      ...['train', '--config-name', 'words', 'trainer.total_training_steps=1'],
    ]);
    const [first, ...others] = readRun(answer.folder).events;
    const { answer: planned } = await doctor('--config-name', 'words', 'trainer.total_training_steps=1');
    expect(first).toMatchObject({
      kind: 'memory_plan',
      data: { planned: planned.run!.peak.bytes, phase: 'checkpoint' },
    });
    expect(first.message).toMatch(
      /^on the CPU the trainer needs at most \d+ MiB \(checkpoint\), and [\d.]+ GiB is available$/,
    );
    expect(others.map(({ kind }) => kind)).not.toContain('warning');
  });
});
