// Pictures in the parts of a run that pictures.runs.test.ts leaves out: a window of turns as a chat with a rollout filter
// and a format penalty, the diagnosis of collapse of models with tiles, a teacher on this machine, an evaluation of a
// checkpoint, and prompts whose image tokens leave no room for an answer.
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { collapseDiagnosisSchema } from '../../../../extension/run-data/diagnostics';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { installation } from '../../../../extension/node/installation';
import { document, killAll, readRun } from '../../../support/terminal';
import { keepAll, trainHere, type Trained } from '../../../support/train-here';
import { groupOverrides, tinyOverrides } from '../../../support/tiny-overrides';
import { makeVisionModel, type TinyVision } from '../../../support/vision-checkpoints';
import { makeWorkspace, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => void (workspace = makeWorkspace()));
afterAll(async () => {
  await killAll(workspace.folder);
  rmSync(installation.cache, { recursive: true, force: true });
  workspace.remove();
});

const settings = (model: string, ...more: string[]): string[] => [
  ...tinyOverrides({ groups: 2, turns: 2, tokens: 6, miniBatch: 4 }),
  `model_path=${model}`,
  'es_manager.train.env_configs.tags=[VisualSimpleSokoban]',
  'es_manager.val.env_configs.tags=[VisualSimpleSokoban]',
  'actor_rollout_ref.rollout.max_model_len=1000',
  ...keepAll,
  ...more,
];
const trained = async (family: TinyVision, ...more: string[]): Promise<Trained & { model: string }> => {
  const model = await makeVisionModel(workspace.folder, family, 1, { thinks: true });
  return { model, ...(await trainHere(workspace, settings(model, ...more), 1, undefined, 'quickstart-sokoban')) };
};

test.each([
  ['qwen2_5_vl', 16],
  ['qwen3_vl', 16],
  ['idefics3', 20],
  ['smolvlm', 20],
] as const)(
  '%s in a window of turns as a chat sees the pictures of its turns, with a filter by entropy and a penalty of the format',
  async (family, imageTokens) => {
    const { model, lines, episodes, events } = await trained(
      family,
      ...['agent_proxy.context_window_mode=limited_multi_turn', 'agent_proxy.max_context_window=2'],
      ...[
        'actor_rollout_ref.rollout.rollout_filter_strategy=top_k',
        'actor_rollout_ref.rollout.rollout_filter_value=0.5',
      ],
      ...['actor_rollout_ref.rollout.rollout_filter_metric=entropy', 'workbench.try_longest_batch=true'],
      'es_manager.format_penalty=-0.25',
    );
    expect(events.filter(event => event.startsWith('longest_batch'))).toEqual([
      expect.stringMatching(
        new RegExp(
          `^longest_batch: the longest pass \\(\\d+ tokens\\) and the encoding of a picture \\(${imageTokens} image tokens\\) took `,
        ),
      ),
    ]);
    expect(lines[0]['actor/grad_norm']).toBeGreaterThan(0);
    expect(lines[0]['rollout/filter_kept_count']).toBe(1);
    const kept = episodes.filter(({ kept }) => kept);
    expect(new Set(kept.map(({ group_id }) => group_id)).size).toBe(1);
    for (const { tokens } of kept)
      expect(tokens.entropies!.some(entropy => entropy !== null && entropy > 0)).toBe(true);
    const { imageToken, tokens: tokensOf } = readTokenizer(model).pictures!;
    expect(tokensOf({ width: 96, height: 96 })).toBe(imageTokens);
    for (const { turns, tokens, penalty, reward, score } of episodes) {
      // Each turn is a sample of its own; that of the second turn shows both states.
      expect(turns).toHaveLength(2);
      const named = turns.flatMap(({ pictures = [] }) => pictures);
      expect(tokens.pictures!.map(({ picture }) => picture)).toEqual([named[0], ...named]);
      for (const { at } of tokens.pictures!) expect(tokens.ids[at]).toBe(imageToken);
      expect(tokens.ids.filter((id, i) => id === imageToken && tokens.mask[i] === 0)).toHaveLength(3 * imageTokens);
      for (const turn of turns) expect(turn.penalty).toBe(turn.executed.length > 0 ? 0 : -0.25);
      expect(penalty).toBe(turns.reduce((sum, turn) => sum + turn.penalty, 0));
      expect(score).toBeCloseTo(reward + penalty, 12);
    }
    expect(episodes.some(({ penalty }) => penalty < 0)).toBe(true);
  },
);

test.each(['idefics3', 'smolvlm'] as const)(
  'the diagnosis of collapse shows the pictures to %s',
  async family => {
    const { folder, lines } = await trained(
      family,
      ...['collapse_detection.first_turn_enabled=true', 'collapse_detection.multi_turn_enabled=true'],
      ...['collapse_detection.compute_freq=1', 'collapse_detection.num_samples=8'],
      ...[...groupOverrides('train', [2], 4), 'actor_rollout_ref.rollout.response_length=12'],
      'agent_proxy.enable_think=true',
    );
    const [file] = readdirSync(join(folder, 'diagnostics')).filter(name => name.startsWith('collapse'));
    const { families } = collapseDiagnosisSchema.parse(
      JSON.parse(readFileSync(join(folder, 'diagnostics', file), 'utf8')),
    );
    expect(families.map(({ name }) => name)).toContain('collapse_first_turn_sample');
    const { log_probs_per_token } = families.find(({ name }) => name === 'collapse_first_turn_sample')!;
    expect(log_probs_per_token.flat().every(Number.isFinite)).toBe(true);
    // The prompts of the groups differ only in their pictures, so a model that did not see them would score them equally.
    for (const row of log_probs_per_token) expect(new Set(row).size).toBe(row.length);
    expect(Number.isFinite(lines[0]['collapse_first_turn_sample/mi_estimate'])).toBe(true);
  },
  120_000,
);

test('a teacher on this machine scores what the policy was shown', async () => {
  const teacher = await makeVisionModel(workspace.folder, 'qwen3_vl', 2, { name: 'teacher' });
  const { lines } = await trained('qwen3_vl', `++workbench.distillation={teacher: ${teacher}, use_rewards: false}`);
  const [{ 'distillation/kl': other }] = lines;
  expect(other).toBeGreaterThan(0.01);
  expect(lines[0]['actor/grad_norm']).toBeGreaterThan(0);
  // A teacher with the policy's weights sees the same pictures, so it assigns the log-probs that were sampled with.
  const same = await trained('qwen3_vl', `++workbench.distillation={teacher: ${join(workspace.folder, 'qwen3_vl')}}`);
  expect(Math.abs(Number(same.lines[0]['distillation/kl']))).toBeLessThan(1e-4);
}, 120_000);

test('an evaluation of a checkpoint shows the pictures, and measures entropies', async () => {
  const { folder } = await trained('qwen2_5_vl', 'trainer.save_freq=1');
  const { code, stderr, answer } = await document<{ folder: string; evaluation: { entropy: number | null } }>(
    workspace.folder,
    ['eval', '--run', basename(folder), ...groupOverrides('val', [2], 2)],
  );
  expect(code, stderr).toBe(0);
  expect(answer.evaluation.entropy).toBeGreaterThan(0);
  const played = readRun(answer.folder).episodes;
  expect(played).toHaveLength(4);
  for (const { turns, tokens } of played)
    expect(tokens.pictures!.map(({ picture }) => picture)).toEqual(turns.flatMap(({ pictures = [] }) => pictures));
  expect(readdirSync(join(answer.folder, 'pictures')).length).toBeGreaterThan(1);
}, 120_000);

test('a prompt without room for an answer names its image tokens, and how to lower them', async () => {
  await expect(trained('qwen2_5_vl', 'actor_rollout_ref.rollout.max_model_len=60')).rejects.toThrow(
    /^config: environment VisualSimpleSokoban returned an observation that is too long \(turn 1, seed \d+, member 0\), because the prompt of \d+ tokens, of which 16 are image tokens of the state's 1 picture, and a response of response_length 6 exceed actor_rollout_ref\.rollout\.max_model_len 60: lower data\.max_pixels, raise max_model_len, lower response_length, or shorten the observation$/,
  );
});
