// `ragen export` in the CLI: a model, an adapter over it, a run's checkpoint; and refusals.
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { InferenceSession } from 'onnxruntime-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tensorsOf } from '../../../golden/tensors';
import { document, ragen, readRun } from '../../../support/terminal';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Exported {
  folder: string;
  dtype: string;
  parameters: number;
  files: string[];
  merged_layers: number;
}

let workspace: Workspace;
beforeAll(() => (workspace = makeWorkspace()));
afterAll(() => workspace.remove());

const golden = (name: string): string => resolve(root, 'test/golden', name);
const run = (...args: string[]) => document<Exported>(workspace.folder, ['export', ...args]);
const refusal = async (...args: string[]): Promise<string> => {
  const { code, stderr, answer } = await document<{ error: { message: string } }>(workspace.folder, [
    'export',
    ...args,
  ]);
  expect(code).toBe(1);
  expect(stderr).toBe(`${answer.error.message}\n`);
  return answer.error.message;
};
const weightsIn = (folder: string) => tensorsOf(join(folder, 'model.safetensors'));

test('exports a model with its tokenizer, under its name', async () => {
  const { code, answer, stderr } = await run('--model', 'ragen-tiny', '--out', 'tiny', '--dtype', 'bf16');
  expect(stderr).toBe('');
  expect(code).toBe(0);
  expect(answer).toMatchObject({ folder: join(workspace.folder, 'tiny'), dtype: 'bf16', merged_layers: 0 });
  expect(answer.files).toEqual(expect.arrayContaining(['model.safetensors', 'config.json', 'tokenizer.json']));
  expect(readdirSync(answer.folder).sort()).toEqual([...answer.files].sort());
  const scored = await ragen(workspace.folder, [
    ...['score', '--model', 'tiny', '--json', '--input'],
    workspace.write('rows.json', JSON.stringify([{ messages: [{ role: 'user', content: 'Hi' }] }])),
  ]);
  expect(scored.code, scored.stderr).toBe(0);
});

test('exports a merged adapter with readable output; ONNX beside it', async () => {
  const { code, stdout } = await ragen(workspace.folder, [
    ...['export', '--model', golden('qwen2'), '--adapter', golden('lora/q-v')],
    ...['--out', 'merged', '--format', 'onnx', '--max-shard-size', '1 GB'],
  ]);
  expect(code).toBe(0);
  expect(stdout).toBe(
    `10,896 parameters in F32, an adapter merged into 4 layers → ${join(workspace.folder, 'merged')}\n`,
  );
  const merged = weightsIn(join(workspace.folder, 'merged')).get('model.layers.1.self_attn.v_proj.weight')!.data;
  const expected = tensorsOf(join(golden('lora/q-v'), 'golden.safetensors'));
  for (const [i, x] of expected.get('merged.model.layers.1.self_attn.v_proj.weight')!.data.entries())
    expect(merged[i]).toBeCloseTo(x, 5);
  const session = await InferenceSession.create(join(workspace.folder, 'merged/model.onnx'));
  expect(session.outputNames).toContain('logits');
  await session.release();
});

describe('a run', () => {
  const train = async (...overrides: string[]): Promise<{ id: string; folder: string }> => {
    const args = ['train', '--config-name', 'words', 'trainer.total_training_steps=2', ...overrides];
    const { answer, stderr, code } = await document<{ run: string; folder: string }>(workspace.folder, args);
    expect(code, stderr).toBe(0);
    return { id: answer.run, folder: answer.folder };
  };

  test('exports its newest checkpoint, or a chosen one', async () => {
    const { id, folder } = await train('trainer.save_freq=1', 'workbench.keep_checkpoints=2');
    expect(readRun(folder).checkpoints).toEqual(['step-000001', 'step-000002']);
    for (const [i, more] of [[], ['--checkpoint', 'step-000001']].entries()) {
      const { answer, code, stderr } = await run('--run', id, '--out', `run${i}`, ...more);
      expect(code, stderr).toBe(0);
      expect(weightsIn(answer.folder)).toEqual(weightsIn(join(folder, `checkpoints/step-00000${2 - i}`)));
      expect(answer.files).not.toContain('checkpoint.json');
      expect(answer.files).toContain('tokenizer.json');
    }
    expect(await refusal('--run', id, '--out', 'run3', '--checkpoint', 'step-000009')).toContain('step-000009');
  });

  test('merges a checkpoint of adapters into the base of the run', async () => {
    const { id } = await train('lora.rank=2', 'lora.alpha=64', 'lora.target_modules=[q_proj,down_proj]');
    const { answer, code, stderr } = await run('--run', id, '--out', 'adapted');
    expect(code, stderr).toBe(0);
    expect(answer.merged_layers).toBe(2);
    const after = weightsIn(answer.folder);
    const base = weightsIn(join(workspace.folder, 'models/random'));
    const changed = [...base.keys()].filter(name =>
      base.get(name)!.data.some((x, i) => x !== after.get(name)!.data[i]),
    );
    expect(changed.sort()).toEqual(['mlp.down_proj', 'self_attn.q_proj'].map(name => `model.layers.0.${name}.weight`));
    expect(JSON.parse(readFileSync(join(answer.folder, 'config.json'), 'utf8'))).toMatchObject({ model_type: 'qwen2' });
  });
});

test('refuses invalid requests', async () => {
  const qwen = ['--model', golden('qwen2')];
  const cases = [
    [['--out', 'o'], /^export: no model is given: give --model or --run$/],
    [[...qwen, '--out', 'o', '--dtype', 'int4'], /^--dtype is "int4": use one of f32, bf16, f16$/],
    [[...qwen, '--out', 'o', '--max-shard-size', '5'], /^--max-shard-size is "5": give a size such as 5GB or 500MB$/],
    [[...qwen, '--out', '.'], /is not empty: give another folder with --out/],
    [[...qwen, '--out', 'o', '--checkpoint', 'step-1'], /needs a run: give the id of the run with --run$/],
    [['--run', 'nowhere', '--out', 'o'], /there is no run nowhere in .*: see ragen runs/],
    [['--run', 'nowhere', ...qwen, '--out', 'o'], /leave out --model and --adapter$/],
    [
      ['--model', golden('lora/q-v'), '--out', 'o'],
      /q-v: give the adapter with --adapter, and its base model with --model$/,
    ],
  ] as const;
  await Promise.all(cases.map(async ([args, sentence]) => expect(await refusal(...args)).toMatch(sentence)));
  expect(existsSync(join(workspace.folder, 'o'))).toBe(false);
});
