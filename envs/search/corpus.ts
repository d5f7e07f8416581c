// A corpus in memory, ranked by BM25. Each file is indexed once, because all episodes of a process share the index.
import MiniSearch from 'minisearch';
import { openDataSet } from '../api/data-set';

export interface Found {
  id: string;
  content: string;
  score: number;
}

export interface Passage {
  id: string;
  content: string;
}

const corpora = new Map<string, Promise<MiniSearch<Passage>>>();

/**
 * Returns the `limit` best passages for a query, best first; empty if no word of the query occurs in the corpus.
 * @param path file whose rows have `content` (or `contents`, `text`) and optionally `id`
 */
export async function searchCorpus(path: string, query: string, limit: number): Promise<Found[]> {
  const corpus = corpora.get(path) ?? indexed(path);
  corpora.set(path, corpus);
  const found = (await corpus).search(query).slice(0, limit);
  return found.map(({ id, score, content }) => ({ id: String(id), score, content: String(content) }));
}

async function indexed(path: string): Promise<MiniSearch<Passage>> {
  const index = new MiniSearch<Passage>({ fields: ['content'], storeFields: ['content'] });
  index.addAll(await passagesOf(path));
  return index;
}

/** Returns all passages of a file; `path` as in `searchCorpus`. */
export async function passagesOf(path: string): Promise<Passage[]> {
  const remedy = 'set env_config.corpus_path to a JSON Lines, JSON or Parquet file with the column "content"';
  const rows = await openDataSet(path, { remedy });
  const passages: Passage[] = [];
  for (let i = 0; i < rows.length; i++) {
    const { id, content, contents, text } = await rows.row(i);
    passages.push({ id: String(id ?? `doc_${i}`), content: String(content ?? contents ?? text ?? '') });
  }
  return passages;
}
