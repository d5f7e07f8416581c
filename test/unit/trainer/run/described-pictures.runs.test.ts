// Runs with VAGEN's prompt formats on pictures of the built-in frozen lake: the environment's true states reward the
// descriptions of a vision-language model by rule. The model is a random one whose answers are made of few pieces, right
// and wrong ones, so the value of each answer is known; it learns to describe what the reward pays for.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import frozenLake from '../../../../envs/frozen-lake/index';
import { installation } from '../../../../extension/node/installation';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { killAll } from '../../../support/terminal';
import { keepAll, mean, trainHere, type Trained } from '../../../support/train-here';
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

/** All episodes play one map, whose first tiles are frozen. */
const lake = { size: 4, p: 0.95, is_slippery: false, success_rate: 1, render_mode: 'rgb_array', map_seed: 1 } as const;

type Form = 'structured' | 'symbolic';

/** Returns the true states before and after a step to the right. */
async function truths(form: Form): Promise<[string, string]> {
  const environment = frozenLake.create(frozenLake.config.parse(lake));
  await environment.reset({ seed: 1 });
  const state = async (): Promise<string> => String(await environment.state!(form));
  const before = await state();
  expect((await environment.step(3)).terminated).toBe(false);
  return [before, await state()];
}

/** A description that states where the player is and nothing else, and its F1 score. */
function half(form: Form, truth: string): { text: string; value: number } {
  if (form === 'structured')
    return { text: JSON.stringify({ player: (JSON.parse(truth) as { player: number[] }).player }), value: 2 / 3 };
  const facts = truth.replace(/[_\s]/g, '').length; // the ice is the background
  return { text: truth.replace(/[^P_\s]/g, '_'), value: 2 / (1 + facts) };
}

const answer = '<answer>Right</answer>';
/** An answer that departs from its format. */
const loose = 'To the right.</think>';

/** Writes a model whose answers are right, half right, wrong or loose, and returns its folder. */
async function makeDescriber(family: TinyVision, form: Form): Promise<string> {
  const [before, after] = await truths(form);
  const observation = (text: string): string => `<observation>${text}</observation><reasoning>On.</reasoning>`;
  const prediction = (text: string): string => `<prediction>${text}</prediction></think>`;
  const described = [before, half(form, before).text, 'ice'].map(observation);
  const predicted = [after, 'ice'].map(prediction);
  const likely = 14;
  return makeVisionModel(workspace.folder, family, 1, {
    name: `${family}-${form}`,
    answers: [
      ...described.map(piece => ({ piece, after: { '<think>': likely } })),
      { piece: loose, after: { '<think>': likely } },
      ...predicted.map(piece => ({ piece, after: Object.fromEntries(described.map(each => [each, likely])) })),
      { piece: answer, after: Object.fromEntries([...predicted, loose].map(each => [each, likely])) },
      { piece: '', after: { [answer]: likely } },
    ],
  });
}

const trained = (model: string, format: string, steps: number, ...more: string[]): Promise<Trained> =>
  trainHere(
    workspace,
    [
      ...tinyOverrides({ groups: 2, turns: 1, tokens: 8, miniBatch: 16 }),
      ...groupOverrides('train', [2], 8),
      `model_path=${model}`,
      `+custom_envs.QuickVisualLake.prompt_format=${format}`,
      '+custom_envs.QuickVisualLake.rewards={format: {weight: 0.5}, observation: {weight: 0.5}, prediction: {weight: 0.25}}',
      ...['p', 'map_seed'].map(
        key => `++custom_envs.QuickVisualLake.env_config.${key}=${lake[key as 'p' | 'map_seed']}`,
      ),
      ...['actor_rollout_ref.rollout.max_model_len=1900', 'actor_rollout_ref.actor.optim.lr=0.02'],
      'es_manager.format_penalty=0',
      ...keepAll,
      ...more,
    ],
    steps,
    undefined,
    'quickstart-vision',
  );

test.each([
  ['qwen2_5_vl', 'structured'],
  ['idefics3', 'symbolic'],
] as const)('%s is rewarded for %s descriptions of pictures', async (family, form) => {
  const model = await makeDescriber(family, form);
  const { lines, episodes, end } = await trained(model, `grounding_worldmodeling_${form}`, 2);
  expect(end).toBe('finished');
  expect(episodes).toHaveLength(32);
  const [before, after] = await truths(form);
  const partly = half(form, before);
  const values: Record<string, number> = { [before]: 1, [partly.text]: partly.value, ice: 0 };
  const tokenizer = readTokenizer(model);
  const seen = new Set<string>();
  for (const { turns, tokens, score, advantage } of episodes) {
    expect(turns).toHaveLength(1);
    const [{ raw, components, component_reward, executed, reward, span, state, pictures, ...turn }] = turns;
    expect([state, pictures?.length]).toEqual(['<image>', 1]);
    expect(turn.true_state).toBe(before);
    const [said] = /(?<=<observation>)[^<]*/.exec(raw) ?? ['loose'];
    seen.add(said);
    if (said === 'loose') {
      // Nothing is executed, and descriptions have no value.
      expect([components, component_reward, executed]).toEqual([{ format: 0 }, 0, []]);
      expect(turn.true_next_state).toBe(before);
    } else {
      const observation = values[said];
      const prediction = Number(raw.includes(`<prediction>${after}`));
      expect(components).toEqual({ format: 1, observation: expect.closeTo(observation, 12) as number, prediction });
      expect(component_reward).toBeCloseTo(0.5 + 0.5 * observation + 0.25 * prediction, 12);
      expect([executed, turn.true_next_state]).toEqual([['Right'], after]);
    }
    expect(score).toBeCloseTo(reward + component_reward!, 12);
    expect(advantage).not.toBeNull();
    // Exactly the sampled tokens of the answer are trained: thoughts, descriptions, the answer and its end.
    const [from, to] = span;
    expect(tokens.mask.map((value, i) => (value === 1 ? i : -1)).filter(i => i >= 0)).toEqual(
      Array.from({ length: to - from }, (_, i) => from + i),
    );
    expect(`<think>${tokenizer.decode(tokens.ids.slice(from, to))}`).toBe(raw);
  }
  expect(seen).toEqual(new Set([...Object.keys(values), 'loose']));

  for (const [i, line] of lines.entries()) {
    const turns = episodes.filter(({ step }) => step === i + 1).map(({ turns: [turn] }) => turn.components!);
    for (const name of ['format', 'observation', 'prediction'])
      expect(line[`train/QuickVisualLake/components/${name}`], name).toBeCloseTo(
        mean(turns.flatMap(components => components[name] ?? [])),
        12,
      );
    expect(line['actor/grad_norm']).toBeGreaterThan(0);
  }
});

test('the descriptions agree more with the true states from step to step', async () => {
  const model = await makeDescriber('qwen3_vl', 'structured');
  const { lines } = await trained(model, 'grounding_worldmodeling_structured', 8);
  const of = (name: string): number[] => lines.map(line => Number(line[`train/QuickVisualLake/components/${name}`]));
  for (const name of ['format', 'observation', 'prediction'])
    expect(mean(of(name).slice(-2))).toBeGreaterThan(mean(of(name).slice(0, 2)) + 0.05);
});

test('answers that never follow the format have the component format 0 and no others', async () => {
  const { lines, episodes } = await trained('ragen-tiny-vision', 'grounding_worldmodeling_structured', 1);
  expect(lines[0]['train/QuickVisualLake/components/format']).toBe(0);
  for (const name of ['observation', 'prediction'])
    expect(lines[0]).not.toHaveProperty([`train/QuickVisualLake/components/${name}`]);
  expect(episodes.every(({ component_reward }) => component_reward === 0)).toBe(true);
});
