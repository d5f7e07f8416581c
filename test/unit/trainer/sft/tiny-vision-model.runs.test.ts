// The maker of ragen-tiny-vision at toy size: a vocabulary and two optimizer steps, once in each phase. Decoder and
// encoder are both trained, the folder that it writes is a model that the product loads, and a second making writes the
// same bytes.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import { roomPictureSize } from '../../../../envs/sokoban/picture';

vi.mock('../../../../extension/node/installation', async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);
const { makeTinyVisionModel } = await import('../../../../extension/trainer/sft/tiny-vision-model');
const { visionRecipes } = await import('../../../../extension/trainer/sft/vision-recipes');
const { readTokenizer } = await import('../../../../extension/models/weights/model-folder');
const { readVisionModel } = await import('../../../../extension/models/vision/vision-folder');

const folder = mkdtempSync(join(tmpdir(), 'ragen-tiny-vision-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function make(
  name: string,
  learn: number,
  recipe = visionRecipes.lake,
): Promise<{ losses: number[]; lines: string[]; at: string }> {
  const lines: string[] = [];
  const at = join(folder, name);
  const losses = await makeTinyVisionModel({
    recipe,
    folder: at,
    seed: 71_000_000,
    corpusBatches: 2,
    steps: { learn, forget: 1 },
    validateEvery: 100,
    validationGroups: 1,
    printLine: line => lines.push(line),
  });
  return { losses, lines, at };
}

test(
  'steps train decoder and encoder to a loadable model in 16 bits, to the bit the same each time',
  { timeout: 300_000 },
  async () => {
    const [one, same, longer] = [await make('one', 1), await make('same', 1), await make('longer', 2)];
    expect(one.losses).toHaveLength(2);
    expect(longer.losses[0]).toBe(one.losses[0]);
    expect(longer.losses.at(-1)).toBeLessThan(one.losses[0]);
    for (const file of ['model.safetensors', 'tokenizer.json', 'config.json', 'preprocessor_config.json'])
      expect(readFileSync(join(same.at, file)).equals(readFileSync(join(one.at, file))), file).toBe(true);

    const [model, trained] = [await readVisionModel(one.at), await readVisionModel(longer.at)];
    expect(model.config.family).toBe('qwen2_5_vl');
    for (const part of ['decoder', 'encoder'] as const) expect(trained[part].flat).not.toEqual(model[part].flat);
    const tokenizer = readTokenizer(one.at);
    expect(tokenizer.pictures!.tokens({ width: 112, height: 112 })).toBe(16); // a token for each tile of a 4 × 4 lake
    const weights = readFileSync(join(one.at, 'model.safetensors'), 'latin1');
    expect(weights).toContain('"model.language_model.layers.0.'); // transformers' names
    expect(weights).toContain('"model.visual.blocks.0.');
    const parameters = model.decoder.count + model.encoder.count;
    expect(one.lines).toContain(`model: ${parameters} parameters`);
    const { size } = statSync(join(one.at, 'model.safetensors'));
    expect(size).toBeGreaterThan(2 * parameters);
    expect(size).toBeLessThan(2 * parameters + 10_000);
    expect(one.lines.at(-1)).toMatch(/own rollouts: success \d+ %/);
  },
);

test('a model for rooms of Sokoban has a token for each cell', { timeout: 300_000 }, async () => {
  const { at, losses } = await make('sokoban', 1, visionRecipes.sokoban);
  expect(losses).toHaveLength(2);
  const size = roomPictureSize(6, 6);
  expect(readTokenizer(at).pictures!.tokens(size)).toBe(36);
  expect((await readVisionModel(at)).config.family).toBe('qwen3_vl');
});
