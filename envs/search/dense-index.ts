// A corpus in memory, ranked by embedding similarity. RAGEN's retrieval server does the same with a flat index of E5
// embeddings. Passages are embedded as "passage: …", queries as "query: …"; the score is the inner product of unit
// vectors. The index is built at the first search, once per corpus and model.
import type { Found, Passage } from './corpus';
import { passagesOf } from './corpus';
import { TextEmbedder } from './text-embedder';

interface DenseIndex {
  embedder: TextEmbedder;
  passages: Passage[];
  vectors: Float32Array[];
}

const embedders = new Map<string, Promise<TextEmbedder>>();
const indices = new Map<string, Promise<DenseIndex>>();

/**
 * Returns the embedding model in a folder, loaded once.
 * @throws the errors of `TextEmbedder.open`
 */
export function embedderOf(folder: string): Promise<TextEmbedder> {
  const embedder = embedders.get(folder) ?? TextEmbedder.open(folder);
  embedders.set(folder, embedder);
  return embedder;
}

/** Returns the `limit` passages most similar to the query, best first; `path` as in `searchCorpus`. */
export async function searchDense(path: string, folder: string, query: string, limit: number): Promise<Found[]> {
  const key = JSON.stringify([path, folder]);
  const index = indices.get(key) ?? indexed(path, folder);
  indices.set(key, index);
  const { embedder, passages, vectors } = await index;
  const [asked] = await embedder.embed([`query: ${query}`]);
  const scores = vectors.map(vector => vector.reduce((sum, x, k) => sum + x * asked[k], 0));
  return [...passages.keys()]
    .sort((a, b) => scores[b] - scores[a] || a - b)
    .slice(0, limit)
    .map(i => ({ ...passages[i], score: scores[i] }));
}

async function indexed(path: string, folder: string): Promise<DenseIndex> {
  const [embedder, passages] = [await embedderOf(folder), await passagesOf(path)];
  return { embedder, passages, vectors: await embedder.embed(passages.map(({ content }) => `passage: ${content}`)) };
}
