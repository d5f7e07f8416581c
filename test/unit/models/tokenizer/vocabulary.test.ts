// A tokenizer with more tokens than the embedding has rows: refused with both numbers if the tokens are used, and
// accepted if the excess tokens are added ones that are never written.
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { UserError } from '../../../../extension/common/user-error';
import { checkModelFolder } from '../../../../extension/models/weights/model-folder';
import { PolicyEngine } from '../../../../extension/models/policy-engine';
import { writeSafetensors } from '../../../../extension/models/weights/safetensors-writer';
import { parameterSpecs, parseDecoderConfig } from '../../../../extension/models/decoder/decoder-config';
import { Weights } from '../../../../extension/models/weights/weights';
import { temporaryFolder } from '../../../support/temporary-folder';
import { goldenFolder, plainLoad, plainSampling, wholeBatch } from '../../../support/small-models';

const folder = temporaryFolder();
const path = (name: string): string => join(folder(), name);

interface TokenizerJson {
  model: { vocab: Record<string, number> };
  added_tokens: { id: number; content: string; special: boolean }[];
}

/** A model with an embedding of `rows` rows beside the golden Qwen2.5 tokenizer, modified by `change`. */
async function model(rows: number, change: (tokenizer: TokenizerJson) => void = () => undefined): Promise<void> {
  cpSync('test/golden/chat/qwen2.5', folder(), { recursive: true });
  const json = JSON.parse(readFileSync(join(goldenFolder('qwen2'), 'config.json'), 'utf8')) as object;
  const config = { ...json, vocab_size: rows };
  writeFileSync(path('config.json'), JSON.stringify(config));
  const weights = new Weights(parameterSpecs(parseDecoderConfig(config, 'config.json')));
  const tensors = weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) }));
  await writeSafetensors(path('model.safetensors'), tensors);
  const tokenizer = JSON.parse(readFileSync(path('tokenizer.json'), 'utf8')) as TokenizerJson;
  change(tokenizer);
  writeFileSync(path('tokenizer.json'), JSON.stringify(tokenizer));
}
const tokens = 2522; // the vocabulary's 2,500 and 22 added ones

it('a vocabulary that fits is accepted', async () => {
  await model(tokens);
  expect((await checkModelFolder(folder())).parameters).toBeGreaterThan(0);
});

it.each([
  [tokens - 22, 'added tokens that the chat template writes'],
  [2000, 'the vocabulary itself'],
])('a vocabulary with an embedding of %i rows is refused, for %s', async rows => {
  await model(rows);
  const sentence = `${folder()}: tokenizer.json has ${tokens} tokens, but the embedding has ${rows} rows (vocab_size of config.json): use tokenizer.json and weights of the same model, or extend the embedding to the size of the vocabulary`;
  await expect(checkModelFolder(folder())).rejects.toThrow(new UserError(sentence));
});

it('an unused added token beyond the embedding is accepted, until an id of it is used', async () => {
  await model(tokens, tokenizer => {
    tokenizer.added_tokens.push({ ...tokenizer.added_tokens[0], id: tokens, content: '[PAD]' });
  });
  await checkModelFolder(folder());
  const engine = new PolicyEngine();
  await engine.load({ ...plainLoad, modelFolder: folder() });
  const sentence = new UserError(
    `${folder()}: the tokenizer produced the id ${tokens}, but the embedding has ${tokens} rows (vocab_size of config.json): use tokenizer.json and weights of the same model, or extend the embedding to the size of the vocabulary`,
  );
  const rows = [{ row: 'a', append: [1, tokens], seed: 1 }];
  await expect(engine.generate(rows, plainSampling)).rejects.toThrow(sentence);
  const samples = [{ ids: Int32Array.of(1, tokens), mask: Uint8Array.of(0, 1) }];
  await expect(engine.score('actor', samples, wholeBatch, 1)).rejects.toThrow(sentence);
  const optimizer = { lr: 0, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
  await expect(engine.trainSupervised(samples, wholeBatch, optimizer, 0)).rejects.toThrow(sentence);
});
