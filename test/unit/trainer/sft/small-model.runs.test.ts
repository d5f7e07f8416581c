// The maker of ragen-small at toy size: a vocabulary and two optimizer steps, once in each phase. The folder that it
// writes is a model that the product loads, and a second making writes the same bytes.
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';

vi.mock('../../../../extension/node/installation', async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);
const { makeSmallModel } = await import('../../../../extension/trainer/sft/small-model');
const { readDecoderConfig, readTokenizer } = await import('../../../../extension/models/weights/model-folder');

const folder = mkdtempSync(join(tmpdir(), 'ragen-small-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function make(name: string): Promise<{ losses: number[]; lines: string[]; at: string }> {
  const lines: string[] = [];
  const at = join(folder, name);
  const losses = await makeSmallModel({
    folder: at,
    seed: 61_000_000,
    corpusBatches: 2,
    vocabSize: 700,
    steps: { learn: 1, forget: 1 },
    validateEvery: 100,
    validationGroups: 1,
    printLine: line => lines.push(line),
  });
  return { losses, lines, at };
}

test(
  'two steps give a loadable Qwen3 model in 16 bits, to the bit the same each time',
  { timeout: 300_000 },
  async () => {
    const [one, other] = [await make('one'), await make('other')];
    expect(one.losses).toHaveLength(2);
    expect(one.losses.every(Number.isFinite)).toBe(true);
    expect(other.losses).toEqual(one.losses);
    expect(readDecoderConfig(one.at)).toMatchObject({ family: 'qwen3', qkNorm: true, tiedHead: true });
    expect(readTokenizer(one.at).stopTokenIds.length).toBeGreaterThan(0);
    for (const file of ['model.safetensors', 'tokenizer.json', 'config.json'])
      expect(readFileSync(join(other.at, file)).equals(readFileSync(join(one.at, file))), file).toBe(true);
    const parameters = Number(/model: (\d+) parameters/.exec(one.lines.join('\n'))![1]);
    const { size } = statSync(join(one.at, 'model.safetensors'));
    expect(size).toBeGreaterThan(2 * parameters);
    expect(size).toBeLessThan(2 * parameters + 10_000);
    expect(one.lines.at(-1)).toMatch(/own rollouts: SmallFrozenLake \d+ %, .*SmallCube3 \d+ %/);
  },
);
