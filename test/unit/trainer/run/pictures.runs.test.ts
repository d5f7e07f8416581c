// Runs that train random vision-language models on Sokoban as pictures: what the model is shown and trained on is what
// the run folder says, in a full chat and in windows, and a killed run that continues equals an uninterrupted one. That of
// Idefics3 is in trained-encoder.runs.test.ts.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { PNG } from 'pngjs';
import type { Episode } from '../../../../extension/run-data/episode';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';
import { Inspector } from '../../../../extension/trainer/inspection/inspector';
import { exportModel } from '../../../../extension/models/weights/export-model';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { installation } from '../../../../extension/node/installation';
import { document, kill, killAll, readRun, results, statusOf, until } from '../../../support/terminal';
import { keepAll, trainHere } from '../../../support/train-here';
import { tinyOverrides } from '../../../support/tiny-overrides';
import { makeVisionModel, type TinyVision } from '../../../support/vision-checkpoints';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
const models = new Map<TinyVision, string>();

beforeAll(async () => {
  workspace = makeWorkspace();
  for (const family of ['qwen2_5_vl', 'qwen3_vl', 'idefics3', 'smolvlm'] as const)
    models.set(family, await makeVisionModel(workspace.folder, family));
});
afterAll(async () => {
  await killAll(workspace.folder);
  rmSync(installation.cache, { recursive: true, force: true });
  workspace.remove();
});

const overrides = (family: TinyVision, ...more: string[]): string[] => [
  ...tinyOverrides({ groups: 2, turns: 2, tokens: 6, miniBatch: 4 }),
  `model_path=${models.get(family)!}`,
  'es_manager.train.env_configs.tags=[VisualSimpleSokoban]',
  'es_manager.val.env_configs.tags=[VisualSimpleSokoban]',
  'actor_rollout_ref.rollout.max_model_len=1000',
  'actor_rollout_ref.actor.optim.lr=0.01',
  ...keepAll,
  ...more,
];

/** Checks that the tokens of an episode show its pictures where the record says, and nowhere else. */
function expectShown(episode: Episode, family: TinyVision, folder: string, everyTurn: boolean): void {
  const { turns, tokens } = episode;
  const shown = turns.flatMap(({ pictures = [] }) => pictures);
  expect(shown).toHaveLength(turns.length);
  expect(turns.map(({ state }) => state)).toEqual(turns.map(() => '<image>'));
  expect(episode.messages.filter(({ content }) => content.includes('<image>'))).toHaveLength(turns.length);
  if (everyTurn) expect(tokens.pictures!.map(({ picture }) => picture)).toEqual(shown);
  const imageToken = readTokenizer(models.get(family)!).pictures!.imageToken;
  const tokensOf = readTokenizer(models.get(family)!).pictures!.tokens;
  let expected = 0;
  for (const { at, picture } of tokens.pictures!) {
    expect(tokens.ids[at]).toBe(imageToken);
    const { width, height } = PNG.sync.read(readFileSync(join(folder, 'pictures', picture)));
    expect([width, height]).toEqual([96, 96]);
    expected += tokensOf({ width, height });
  }
  expect(tokens.ids.filter((id, i) => id === imageToken && tokens.mask[i] === 0)).toHaveLength(expected);
}

describe.each(['qwen2_5_vl', 'qwen3_vl', 'idefics3'] as const)('%s', family => {
  test.each(['full', 'single_turn'])('trains on what it was shown in mode %s', async mode => {
    const more = [`agent_proxy.context_window_mode=${mode}`, 'agent_proxy.max_context_window=2'];
    const { lines, episodes, folder, end } = await trainHere(
      workspace,
      overrides(family, ...more),
      2,
      undefined,
      'quickstart-sokoban',
    );
    expect(end).toBe('finished');
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      expect(line['actor/grad_norm']).toBeGreaterThan(0);
      // The first update sees the tokens with the same pictures as the sampler did; windowed modes have two updates.
      if (mode === 'full') expect(Math.abs(Number(line['actor/ppo_kl']))).toBeLessThan(1e-4);
    }
    expect(episodes).toHaveLength(8);
    for (const episode of episodes) expectShown(episode, family, folder, mode === 'full');
    const stored = readdirSync(join(folder, 'pictures'));
    const named = episodes.flatMap(({ turns, final_pictures = [] }) => [
      ...turns.flatMap(({ pictures = [] }) => pictures),
      ...final_pictures,
    ]);
    expect(stored.sort()).toEqual([...new Set(named)].sort());
  });
});

test("a what-if's policy samples with the pictures of the episode", async () => {
  const more = ['trainer.save_freq=1', 'workbench.keep_checkpoints=9'];
  const run = await trainHere(workspace, overrides('qwen2_5_vl', ...more), 1, undefined, 'quickstart-sokoban');
  const origin = run.episodes.find(({ mode, turns }) => mode === 'train' && turns.length === 2)!;
  const inspector = new Inspector(1, { phase: () => undefined, whatIfTokens: () => undefined });
  try {
    const { mode, step, id } = origin;
    const about = { folder: run.folder, mode, step, id };
    const { episode, written } = await inspector.whatIf({
      ...about,
      turn: 2,
      given: {},
      checkpoint: 'initial',
      seed: 5,
    });
    expect(episode.tokens.pictures).toEqual(origin.tokens.pictures);
    const found = await inspector.rescore({ ...written!, checkpoint: 'initial' });
    const [from, to] = episode.turns[1].span;
    expect(to).toBeGreaterThan(from);
    for (let i = from; i < to; i++) expect(episode.tokens.logprobs[i]).toBeCloseTo(found.tokens[i].logprob!, 4);
  } finally {
    await inspector.close();
  }
}, 120_000);

test('adapters, a critic and the diagnosis of collapse see the pictures', async () => {
  const more = [
    ...['lora.rank=4', 'lora.alpha=8', 'lora.target_modules=[q_proj,v_proj]', 'algorithm.adv_estimator=gae'],
    ...['collapse_detection.first_turn_enabled=true', 'collapse_detection.multi_turn_enabled=true'],
    'collapse_detection.compute_freq=1',
  ];
  const { lines, folder, end } = await trainHere(
    workspace,
    overrides('qwen3_vl', ...more),
    2,
    undefined,
    'quickstart-sokoban',
  );
  expect(end).toBe('finished');
  for (const line of lines) {
    expect(line['actor/grad_norm']).toBeGreaterThan(0);
    expect(line['critic/grad_norm']).toBeGreaterThan(0);
    expect(Number.isFinite(line['critic/vf_loss'])).toBe(true);
  }
  expect(readdirSync(join(folder, 'diagnostics')).some(name => name.startsWith('collapse'))).toBe(true);
}, 120_000);

test.each(['qwen2_5_vl', 'qwen3_vl', 'smolvlm'] as const)(
  '%s: a run that is killed and continues equals an uninterrupted run bit by bit',
  async family => {
    const settings = [
      ...['--config-name', 'quickstart-sokoban', ...overrides(family)],
      ...['trainer.total_training_steps=3', 'trainer.save_freq=1', 'trainer.val_before_train=false'],
      'trainer.test_freq=-1',
    ];
    const start = async (...more: string[]): Promise<string> => {
      const { code, answer, stderr } = await document<{ folder: string }>(workspace.folder, [
        'train',
        ...settings,
        ...more,
      ]);
      expect(code, stderr).toBe(0);
      return answer.folder;
    };
    const whole = await start();
    const run = await start('--detach');
    await until('a checkpoint exists', () => (statusOf(run)?.step ?? 0) >= 1 && readRun(run).checkpoints.length > 0);
    await kill(run);
    expect(statusOf(run)?.step).toBeLessThan(3);
    const { code, stderr } = await document(workspace.folder, ['resume', basename(run)]);
    expect(code, stderr).toBe(0);
    expect(results(run)).toEqual(results(whole));
    expect(readdirSync(join(run, 'pictures')).sort()).toEqual(readdirSync(join(whole, 'pictures')).sort());

    const checkpoint = join(run, 'checkpoints', readRun(run).checkpoints.at(-1)!);
    const out = join(workspace.folder, `exported-${family}`);
    await exportModel({ model: checkpoint, out, format: 'safetensors', maxShardBytes: 2 ** 30 });
    const [first, exported] = [await readVisionModel(models.get(family)!), await readVisionModel(out)];
    expect(exported.encoder.flat).toEqual(first.encoder.flat); // frozen
    expect(exported.decoder.flat).not.toEqual(first.decoder.flat);
    expect(exported.decoder.flat).toEqual((await readVisionModel(checkpoint)).decoder.flat);
  },
  120_000,
);
