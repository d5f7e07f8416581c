// What a plan says about image tokens: the size of the pictures of built-in environments, the tokens of a picture by the
// processor's limits, how many of them a prompt shows, what they cost, and what is refused.
import { describe, expect, it, vi } from 'vitest';
import { planMemory } from '../../../../extension/models/memory/memory-plan';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { planInput } from '../../../../extension/trainer/plan/memory-input';
import { pictureNotes, pictureWork, shownPictures } from '../../../../extension/trainer/plan/planned-pictures';
import { stepTime, workloadOf } from '../../../../extension/trainer/plan/step-time';
import { temporaryFolder } from '../../../support/temporary-folder';
import { makeVisionModel } from '../../../support/vision-checkpoints';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

const folder = temporaryFolder();

/** Sokoban as pictures of 96 × 96 pixels, three turns, 500 tokens of which an answer takes 100. */
const configOf = (...overrides: string[]) =>
  loadConfig({
    configName: 'quickstart-sokoban',
    overrides: [
      'es_manager.train.env_configs.tags=[VisualSimpleSokoban]',
      'es_manager.val.env_configs.tags=[VisualSimpleSokoban]',
      'agent_proxy.max_turn=3',
      ...['actor_rollout_ref.rollout.max_model_len=500', 'actor_rollout_ref.rollout.response_length=100'],
      ...overrides,
    ],
    presetFolders: ['media/presets'],
    workspace: folder(),
  }).config;

describe('image tokens of a picture', () => {
  it.each(['qwen2_5_vl', 'idefics3'] as const)(
    'are those of the tokenizer within the configured limits: %s',
    async family => {
      const model = await makeVisionModel(folder(), family);
      const counts = [null, 256].map(maxPixels => {
        const [found] = shownPictures(configOf(`data.max_pixels=${maxPixels}`), model);
        const { width, height, tokens } = found;
        expect([width, height, found.assumed]).toEqual([96, 96, false]);
        const prompt = readTokenizer(model, { pixels: { maxPixels } }).pictures!;
        expect(tokens).toBe(prompt.tokens({ width, height }));
        expect(prompt.expansion({ width, height }).split(prompt.imageText)).toHaveLength(tokens + 1);
        return tokens;
      });
      expect(counts[1]).toBeLessThan(counts[0]);
    },
  );

  it('follow the configuration of the environment, and are assumed for environments outside the product', async () => {
    const model = await makeVisionModel(folder(), 'qwen2_5_vl');
    const sized = (...overrides: string[]) =>
      shownPictures(configOf(...overrides), model).map(({ width, height, assumed }) => ({ width, height, assumed }));
    const sokoban = 'custom_envs.VisualSimpleSokoban';
    expect(sized(`${sokoban}.env_config.dim_room=[5,8]`)).toEqual([{ width: 128, height: 80, assumed: false }]);
    expect(sized(`${sokoban}.env_config.render_mode=text`)).toEqual([]);
    expect(sized(`${sokoban}.env_type=./mine.ts`)).toEqual([{ width: 512, height: 512, assumed: true }]);
    expect(sized(`${sokoban}.env_type=bandit`)).toEqual([]);
  });
});

describe('the notes of a plan', () => {
  it('name the tag, the tokens, and the share of the context', async () => {
    const model = await makeVisionModel(folder(), 'qwen2_5_vl');
    const start = 'config: custom_envs.VisualSimpleSokoban: a picture of 96 × 96 pixels takes 16 image tokens';
    expect(pictureNotes(configOf(), model)).toEqual([
      `${start}, and 3 of them in a prompt take 48 of max_model_len 500`,
    ]);
    const windowed = ['agent_proxy.context_window_mode=limited_multi_turn', 'agent_proxy.max_context_window=2'];
    expect(pictureNotes(configOf(...windowed), model)[0]).toContain('2 of them in a prompt take 32');
    const [left] = pictureNotes(configOf('actor_rollout_ref.rollout.max_model_len=140'), model);
    expect(left).toBe(
      `${start}, and 2 of them in a prompt take 32 of max_model_len 140; a prompt cannot show all 3 turns, and the oldest are left out: lower data.max_pixels or raise max_model_len to show more`,
    );
    const [none] = pictureNotes(configOf('actor_rollout_ref.rollout.max_model_len=110'), model);
    expect(none).toBe(
      `${start}, which with response_length 100 exceed actor_rollout_ref.rollout.max_model_len 110: lower data.max_pixels or raise max_model_len`,
    );
  });

  it('refuse a tag with pictures for a model that reads text only', () => {
    expect(() => pictureNotes(configOf(), 'media/models/ragen-tiny')).toThrow(
      'config: custom_envs.VisualSimpleSokoban returns images, which the model cannot read: use a vision-language model, or set custom_envs.VisualSimpleSokoban.env_config.render_mode=text',
    );
    const text = configOf('custom_envs.VisualSimpleSokoban.env_config.render_mode=text');
    expect(pictureNotes(text, 'media/models/ragen-tiny')).toEqual([]);
    for (const unknown of ['./mine.ts', 'remote'])
      expect(
        pictureNotes(configOf(`custom_envs.VisualSimpleSokoban.env_type=${unknown}`), 'media/models/ragen-tiny'),
      ).toEqual([]);
  });
});

describe('the plan of a run with pictures', () => {
  it('has rows for the encoder that depend on the size of pictures, and none without pictures', async () => {
    const model = await makeVisionModel(folder(), 'qwen2_5_vl');
    const bytes = async (what: string, ...overrides: string[]): Promise<number> => {
      const input = await planInput(configOf(`model_path=${model}`, ...overrides), model, folder());
      return planMemory(input).rows.find(row => row.what === what)?.bytes ?? 0;
    };
    const small = await bytes('encoder activations', 'data.max_pixels=256');
    expect(await bytes('encoder activations')).toBeGreaterThan(small);
    expect(await bytes('image features of a call', 'agent_proxy.max_turn=6')).toBe(
      2 * (await bytes('image features of a call')),
    );
    expect(await bytes('vision encoder')).toBeGreaterThan(0);
    const text = 'custom_envs.VisualSimpleSokoban.env_config.render_mode=text';
    expect(await bytes('encoder activations', text)).toBe(0);
    expect(await bytes('encoder activations', 'actor_rollout_ref.rollout.max_model_len=110')).toBe(0); // never encoded
  });

  it('takes longer with more patches, and as long as measured in a run with the same pictures', async () => {
    const model = await makeVisionModel(folder(), 'qwen2_5_vl');
    const timed = async (...overrides: string[]) => {
      const config = configOf(`model_path=${model}`, ...overrides);
      const { pictures } = await planInput(config, model, folder());
      const work = workloadOf(config, 1e6, null, pictureWork(config, pictures));
      return { work, time: stepTime(work, model, 1, [])! };
    };
    const [small, large] = [await timed('data.max_pixels=256'), await timed()];
    expect(large.work.tokens - small.work.tokens).toBe(3 * (16 - 4));
    expect(large.time.generation_s).toBeGreaterThan(small.time.generation_s);
    expect(large.time.training_s).toBeGreaterThan(small.time.training_s);
    const { work } = large;
    const run = { id: 'r', name: 'r', model, work: { ...work, pictures: null }, generation: 2, scoring: 0, rest: 1 };
    expect(stepTime(work, model, 1, [run])).toMatchObject({ generation_s: 2, training_s: 1, basis: 'measured' });
  });
});
