// `ragen sft` end to end: demonstrations by the solvers of all environments that have one, training of all weights and
// of adapters, a kill and a resume, and a model folder that other commands accept.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EvaluationSummary } from '../../../../extension/trainer/evaluation/evaluation-summary';
import type { TrajectoryLine } from '../../../../extension/trainer/evaluation/trajectory-line';
import type { SftResult } from '../../../../extension/trainer/sft/sft-request';
import { document, killAll } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write(
    'config/small.yaml',
    `# Seconds of fine-tuning.
defaults: [sft]
demonstrations: {config_name: quickstart, tags: [FrozenLake]} # as a grid, which the model has never seen
data: {train_size: 24, val_size: 8, train_batch_size: 8, micro_batch_size_per_gpu: 8, max_length: 700}
model: {partial_pretrain: ragen-tiny, lora_rank: 0, enable_gradient_checkpointing: false}
optim: {lr: 1e-3}
trainer: {total_epochs: 2, experiment_name: small}
workbench: {device: cpu, threads: 1}
`,
  );
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const sft = (...overrides: string[]) =>
  document<SftResult & { error?: { message: string } }>(workspace.folder, [
    'sft',
    '--config-name',
    'small',
    ...overrides,
  ]);
const linesOf = <T>(file: string): T[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as T);
const shownIn = (folder: string, part: 'train' | 'val') =>
  linesOf<TrajectoryLine>(join(folder, `demonstrations-${part}.jsonl`));

describe('demonstrations', () => {
  test('each environment with a solver contributes solved episodes, on separate seeds, in equal shares', async () => {
    const tags = ['CoordSokoban', 'FrozenLake', 'Bandit'];
    const { code, stderr, answer } = await sft(
      `demonstrations.tags=[${tags.join()}]`,
      'data.max_length=2000',
      'trainer.total_training_steps=1',
      'trainer.experiment_name=all',
    );
    expect(code, stderr).toBe(0);
    const { train, val } = { train: shownIn(answer.folder, 'train'), val: shownIn(answer.folder, 'val') };
    expect([train.length, val.length]).toEqual([24, 8]);
    for (const tag of tags) {
      const seeds = (part: TrajectoryLine[]) =>
        part.filter(({ metadata }) => metadata.tag === tag).map(({ metadata }) => Number(metadata.seed));
      expect(seeds(train).length).toBe(8);
      expect(Math.min(...seeds(train))).toBeGreaterThanOrEqual(100_000);
      expect(Math.max(...seeds(train))).toBeLessThan(Math.min(...seeds(val)));
    }
    for (const { metadata, messages } of [...train, ...val]) {
      expect(metadata.success).toBe(true);
      for (const { role, content } of messages)
        if (role === 'assistant') expect(content).toMatch(/^<think>[^<]+<\/think><answer>[^<]+<\/answer>$/);
    }
    const thoughts = (tag: string): string =>
      train.find(({ metadata }) => metadata.tag === tag)!.messages.find(({ role }) => role === 'assistant')!.content;
    expect(thoughts('CoordSokoban')).toMatch(/^<think>Me \(\d, \d\), box \(\d, \d\)/);
    expect(thoughts('FrozenLake')).toMatch(/^<think>The next steps are (Left|Right|Up|Down)/); // a grid without coordinates
    expect(thoughts('Bandit')).toMatch(/^<think>\S+ is steady, (\S+) may pay more\.<\/think><answer>\1<\/answer>$/);
  });

  test('without thinking, a demonstration has only an answer; an environment without a solver is reported', async () => {
    const { code, stderr, answer } = await sft(
      'demonstrations.overrides=[agent_proxy.enable_think=false]',
      'trainer.total_training_steps=1',
      'trainer.experiment_name=silent',
    );
    expect(code, stderr).toBe(0);
    for (const { messages } of shownIn(answer.folder, 'train'))
      for (const { role, content } of messages)
        if (role === 'assistant') expect(content).toMatch(/^<answer>[^<]+<\/answer>$/);
    const none = await sft(
      'demonstrations.config_name=words',
      'demonstrations.tags=null',
      'data.max_length=400',
      'trainer.experiment_name=none',
    );
    expect(none.code).toBe(1);
    expect(none.answer.error!.message).toBe(
      'sft: the solver of environment Words solves no level: add or correct solve(), or leave the environment out',
    );
  });
});

test('in an environment with roles, the solver plays every role, and each role is demonstrated in its own context', async () => {
  const { code, stderr, answer } = await sft(
    'demonstrations.config_name=nim',
    'demonstrations.tags=[Nim]',
    'trainer.total_training_steps=1',
    'trainer.experiment_name=roles',
  );
  expect(code, stderr).toBe(0);
  expect(answer.demonstrations).toEqual({ train: 24, val: 8 });
  const lines = shownIn(answer.folder, 'train');
  const games = new Map<unknown, TrajectoryLine[]>();
  for (const line of lines) games.set(line.metadata.seed, [...(games.get(line.metadata.seed) ?? []), line]);
  expect(games.size).toBe(24);
  for (const parts of games.values()) {
    // the first player can win from every start, and the solver never errs
    const outcomes = parts.map(({ metadata }) => [metadata.role, metadata.success, metadata.total_reward]);
    const lost = ['second', false, -1];
    expect(outcomes).toEqual(parts.length === 1 ? [['first', true, 1]] : [['first', true, 1], lost]);
    const moves = parts.map(({ messages }) =>
      messages.flatMap(({ role, content }) => (role === 'assistant' ? [/<answer>(\w\d)</.exec(content)![1]] : [])),
    );
    // each player reads the moves of the other in its states, and nothing that the other has thought
    const seen = (part: TrajectoryLine): string[] =>
      part.messages.flatMap(({ role, content }) =>
        role === 'user' ? (/Opponent: (\w\d)/.exec(content)?.slice(1) ?? []) : [],
      );
    expect(seen(parts[0]).slice(0, moves[0].length - 1)).toEqual((moves[1] ?? []).slice(0, moves[0].length - 1));
    if (parts[1]) expect(seen(parts[1])).toEqual(moves[0].slice(0, moves[1].length));
  }
});

test('full training lowers the loss on the demonstrations, writes a loadable model, and is reused on a second call', async () => {
  const { code, stderr, answer } = await sft();
  expect(code, stderr).toBe(0);
  expect(answer).toMatchObject({ steps: 6, total_steps: 6, demonstrations: { train: 24, val: 8 } });
  expect(answer.val_loss.after!).toBeLessThan(answer.val_loss.before! * 0.9);
  const lines = linesOf<Record<string, number>>(join(answer.folder, 'metrics.jsonl'));
  expect(lines.map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(lines.map(line => 'val/loss' in line)).toEqual([true, false, false, true, false, false, true]);
  expect(lines.at(-1)!['val/loss']).toBe(answer.val_loss.after);
  expect(readdirSync(answer.model!)).toContain('tokenizer.json');
  const played = await document<{ evaluation: EvaluationSummary }>(workspace.folder, [
    ...['eval', '--config-name', 'quickstart', '--model', answer.model!, 'workbench.device=cpu'],
    ...['es_manager.val.env_groups=4', 'es_manager.val.env_configs.n_groups=[4]'],
  ]);
  expect(played.code, played.stderr).toBe(0);
  expect((await sft()).answer).toEqual(answer);
  const other = await sft('optim.lr=2e-3');
  expect(other.answer.error!.message).toMatch(/contains the training results of another configuration/);
});

test('a stopped training continues to the same weights', async () => {
  const whole = await sft('trainer.experiment_name=whole', 'model.lora_rank=4', 'model.lora_dropout=0.1');
  expect(whole.code, whole.stderr).toBe(0);
  // The training stops after the third step, as by Ctrl-C.
  const names = ['trainer.experiment_name=halved', 'model.lora_rank=4', 'model.lora_dropout=0.1'];
  const interrupted = await document<SftResult>(
    workspace.folder,
    ['sft', '--config-name', 'small', ...names],
    `(until grep -q '"step":2' sft/halved/metrics.jsonl 2>/dev/null; do sleep 0.02; done; kill -INT $$) & :`,
  );
  expect(interrupted.code, interrupted.stderr).toBe(0);
  const resumed = await sft(...names);
  expect(resumed.code, resumed.stderr).toBe(0);
  if (interrupted.answer.model === null) {
    expect(interrupted.answer.steps).toBeLessThan(6);
    expect(resumed.stderr).toContain(`continuing after step ${interrupted.answer.steps} of 6`);
  }
  const weights = (folder: string) => readFileSync(join(folder, 'model/model.safetensors')).toString('latin1');
  expect(weights(resumed.answer.folder) === weights(whole.answer.folder)).toBe(true);
  expect(linesOf(join(resumed.answer.folder, 'metrics.jsonl'))).toEqual(
    linesOf(join(whole.answer.folder, 'metrics.jsonl')),
  );
  const adapter = readFileSync(join(whole.answer.folder, 'checkpoints/step-000006/adapter_config.json'), 'utf8');
  expect(JSON.parse(adapter)).toMatchObject({ peft_type: 'LORA' });
});

test('configuration errors are reported with key, value and remedy', async () => {
  const message = async (...overrides: string[]): Promise<string> =>
    (await sft('trainer.experiment_name=mistaken', ...overrides)).answer.error!.message;
  expect(await message('optim.learning_rate=1')).toMatch(/^config: optim.learning_rate is not in the configuration: /);
  expect(await message('data.max_length=0')).toMatch(/^config: data.max_length is 0: use an integer ≥ 1/);
  expect(await message('data.max_length=9999')).toMatch(/ragen-tiny supports only 2048 positions: use at most 2048$/);
  expect(await message('demonstrations.tags=[Chess]')).toMatch(/names Chess, which custom_envs .* does not have/);
  const hard = [
    'demonstrations.tags=[LargerSokoban]',
    'demonstrations.max_depth=1',
    'data.train_size=3',
    'data.val_size=1',
  ];
  expect(await message(...hard)).toMatch(
    /^sft: only 0 of \d+ levels of LargerSokoban were solved within 1 actions, 5 turns and 700 tokens: /,
  );
});
