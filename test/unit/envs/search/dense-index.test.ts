// The dense index: embeddings equal transformers' (test/golden/make/search-embedder.py), ranks equal their inner
// products, and a folder without a model is reported in one sentence.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { searchDense } from '../../../../envs/search/dense-index';
import search from '../../../../envs/search/index';
import { TextEmbedder } from '../../../../envs/search/text-embedder';

const model = resolve(__dirname, '../../../golden/search-embedder');
const corpus = resolve(__dirname, '../../../../media/data/search/corpus.jsonl');
interface Case {
  text: string;
  tokens: number;
  embedding: number[];
}
const cases = JSON.parse(readFileSync(join(model, 'embeddings.json'), 'utf8')) as Case[];
const folder = mkdtempSync(join(tmpdir(), 'embedder-'));
afterAll(() => rmSync(folder, { recursive: true }));
const product = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a).reduce((sum, x, k) => sum + x * b[k], 0);

test('embeddings equal those of transformers, alone and batched, truncated when too long', async () => {
  const embedder = await TextEmbedder.open(model);
  expect(cases.some(({ tokens }) => tokens === 48)).toBe(true); // the model's maximum length
  const together = await embedder.embed(cases.map(({ text }) => text));
  for (const [i, { text, embedding }] of cases.entries()) {
    const [alone] = await embedder.embed([text]);
    for (const found of [alone, together[i]]) {
      expect(found).toHaveLength(embedding.length);
      embedding.forEach((x, k) => expect(found[k]).toBeCloseTo(x, 5));
    }
  }
});

test('passages are ranked by the similarity of their embeddings', async () => {
  const found = await searchDense(corpus, model, 'largest town of the island of Lumuna', 216);
  expect(found).toHaveLength(216);
  expect(found.map(({ score }) => score)).toEqual(found.map(({ score }) => score).toSorted((a, b) => b - a));
  const scores = new Map(found.map(({ content, score }) => [content, score]));
  for (const { text, embedding } of cases.filter(({ text }) => text.startsWith('passage: ')))
    expect(scores.get(text.slice('passage: '.length))).toBeCloseTo(product(embedding, cases[0].embedding), 5);
  expect(await searchDense(corpus, model, 'largest town of the island of Lumuna', 3)).toEqual(found.slice(0, 3));
});

test('an episode searches the index', async () => {
  const config = search.config.parse({ embedding_model: model, max_search_results: 2 });
  await search.dependencies!(config);
  const environment = search.create(config);
  await environment.reset({ seed: 10000 });
  const { observation } = await environment.step('search[Lumuna]');
  const [best, next] = await searchDense(corpus, model, 'Lumuna', 2);
  expect(observation).toContain(`[Document 1] (ID: ${best.id}, Score: ${best.score.toFixed(3)})\n${best.content}`);
  expect(observation).toContain(`[Document 2] (ID: ${next.id}, Score: ${next.score.toFixed(3)})`);
});

describe('a folder without a usable model', () => {
  const remedy = /set env_config\.embedding_model to a folder with tokenizer\.json and model\.onnx/;
  test('is reported with its name and a remedy', async () => {
    const error: unknown = await TextEmbedder.open(folder).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ name: 'MissingDependency', remedy: expect.stringMatching(remedy) as string });
    expect((error as Error).message).toBe(`cannot find an embedding model in ${folder}`);
  });

  test('is reported with the reason why a file cannot be used', async () => {
    for (const name of ['tokenizer.json', 'tokenizer_config.json'])
      writeFileSync(join(folder, name), readFileSync(join(model, name)));
    writeFileSync(join(folder, 'model.onnx'), 'no model');
    await expect(TextEmbedder.open(folder)).rejects.toThrow(/^cannot use the embedding model in .+ \(.+\)$/);
  });
});
