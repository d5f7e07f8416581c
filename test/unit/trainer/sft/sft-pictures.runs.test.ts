// `ragen sft` of a random vision-language model on pictures of frozen lakes: the thoughts name what the pictures show, the
// loss falls, the encoder stays as it was, and a stopped training continues to the same bits.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PNG } from 'pngjs';
import { tilePixels } from '../../../../envs/frozen-lake/picture';
import { readVisionModel } from '../../../../extension/models/vision/vision-folder';
import type { TrajectoryLine } from '../../../../extension/trainer/evaluation/trajectory-line';
import type { SftResult } from '../../../../extension/trainer/sft/sft-request';
import { document, killAll } from '../../../support/terminal';
import { makeVisionModel } from '../../../support/vision-checkpoints';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

let workspace: Workspace;
let model: string;
beforeAll(async () => {
  workspace = makeWorkspace();
  model = await makeVisionModel(workspace.folder, 'qwen2_5_vl');
  workspace.write(
    'config/seen.yaml',
    `# The quickstart's lakes as pictures.
defaults: [quickstart]
custom_envs: {QuickFrozenLake: {env_config: {render_mode: rgb_array}}}
`,
  );
  workspace.write(
    'config/small.yaml',
    `# Seconds of fine-tuning.
defaults: [sft]
demonstrations: {config_name: seen}
data: {train_size: 12, val_size: 4, train_batch_size: 4, micro_batch_size_per_gpu: 8, max_length: 1000}
model: {partial_pretrain: ${model}, lora_rank: 0, enable_gradient_checkpointing: false}
optim: {lr: 1e-2}
trainer: {total_epochs: 2}
workbench: {device: cpu, threads: 1}
`,
  );
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

const sft = (name: string, before = '') =>
  document<SftResult>(
    workspace.folder,
    ['sft', '--config-name', 'small', `trainer.experiment_name=${name}`, 'workbench.threads=1'],
    before,
  );
const linesOf = <T>(file: string): T[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as T);

/** Whether a tile of a picture of a lake has a pixel of the given colour. */
function hasColour(file: string, [row, column]: readonly number[], colour: readonly number[]): boolean {
  const { width, data } = PNG.sync.read(readFileSync(file));
  for (let y = row * tilePixels; y < (row + 1) * tilePixels; y++)
    for (let x = column * tilePixels; x < (column + 1) * tilePixels; x++)
      if (colour.every((value, i) => data[4 * (y * width + x) + i] === value)) return true;
  return false;
}

test('the thoughts name what is in the pictures, and the decoder learns from them', async () => {
  const { code, stderr, answer } = await sft('whole');
  expect(code, stderr).toBe(0);
  expect(answer).toMatchObject({ steps: 6, demonstrations: { train: 12, val: 4 } });
  expect(answer.val_loss.after!).toBeLessThan(answer.val_loss.before! * 0.9);

  const shown = ['train', 'val'].flatMap(part =>
    linesOf<TrajectoryLine>(join(answer.folder, `demonstrations-${part}.jsonl`)),
  );
  const named = new Set<string>();
  let thoughts = 0;
  for (const { messages } of shown)
    messages.forEach(({ pictures = [], content }, i) => {
      if (messages[i].role !== 'user') return;
      expect(content).toMatch(/^<image>/);
      expect(pictures).toHaveLength(1);
      named.add(pictures[0]!);
      if (i + 1 === messages.length) return;
      const places = /^<think>Me \((\d), (\d)\), goal \((\d), (\d)\): /
        .exec(messages[i + 1].content)!
        .slice(1)
        .map(Number);
      const file = join(answer.folder, 'pictures', pictures[0]!);
      expect(hasColour(file, places.slice(0, 2), [45, 140, 60])).toBe(true); // the player's coat
      expect(hasColour(file, places.slice(2), [205, 40, 50])).toBe(true); // the present
      thoughts++;
    });
  expect(thoughts).toBeGreaterThanOrEqual(16);
  expect(readdirSync(join(answer.folder, 'pictures'))).toEqual(expect.arrayContaining([...named]));

  const [first, trained] = [await readVisionModel(model), await readVisionModel(answer.model!)];
  expect(trained.encoder.flat).toEqual(first.encoder.flat);
  expect(trained.decoder.flat).not.toEqual(first.decoder.flat);
}, 120_000);

test('a stopped training continues to the same bits', async () => {
  const stop = `(until grep -q '"step":2' sft/halved/metrics.jsonl 2>/dev/null; do sleep 0.02; done; kill -INT $$) & :`;
  const interrupted = await sft('halved', stop);
  expect(interrupted.code, interrupted.stderr).toBe(0);
  const resumed = await sft('halved');
  expect(resumed.code, resumed.stderr).toBe(0);
  const of = (name: string, file: string): string =>
    readFileSync(join(workspace.folder, 'sft', name, file)).toString('latin1');
  for (const file of ['model/model.safetensors', 'metrics.jsonl'])
    expect(of('halved', file) === of('whole', file), file).toBe(true);
}, 120_000);
