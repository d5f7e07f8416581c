// Question answering by search (RAGEN, SearchQA). The action search[words] returns passages; finish[answer] ends the
// episode with a score. Passages come from a corpus in memory, ranked by BM25 or by embeddings, or from RAGEN's
// retrieval server. The seed modulo the number of questions selects the question. The built-in questions are about a
// fictional archipelago (media/data/search).
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { openDataSet } from '../api/data-set';
import { defineEnvironment, MissingDependency, type StepResult } from '../api/environment';
import { searchCorpus, type Found } from './corpus';
import { embedderOf, searchDense } from './dense-index';
import { healthy, retrieve } from './retrieval-server';
import { answerIn, scoreAnswer } from './scoring';

const config = z.strictObject({
  dataset_name: z
    .string()
    .default('hotpotqa')
    .describe('name of the data set for readers of the configuration; has no effect'),
  train_path: z
    .string()
    .nullable()
    .default(null)
    .describe('file or folder with the questions; null: the shipped questions are used'),
  val_path: z
    .string()
    .nullable()
    .default(null)
    .describe('file or folder with the validation questions; null: the questions of train_path are used'),
  max_instances: z.int().min(1).default(20000).describe('maximum number of questions to use, starting with the first'),
  corpus_path: z
    .string()
    .nullable()
    .default(null)
    .describe('file with the passages to search; null: the shipped passages are used'),
  embedding_model: z
    .string()
    .nullable()
    .default(null)
    .describe('folder of an ONNX embedding model that ranks the passages; null: BM25 ranks them'),
  retrieval_server_url: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'address of a retrieval server; null: the address is read from the environment variable RETRIEVAL_SERVER_URL, and if this variable is not set, the corpus in memory is searched',
    ),
  retrieval_timeout: z.number().positive().default(30).describe('timeout in seconds of a request to the server'),
  max_search_results: z.int().min(1).max(50).default(5),
  max_total_chars: z.int().min(1).default(4000).describe('maximum number of characters shown per search'),
  max_steps: z.int().min(1).default(10),
  mock_mode: z
    .boolean()
    .default(false)
    .describe('true: the corpus in memory is searched even if a retrieval server is configured'),
  correct_reward: z.number().default(1),
  incorrect_reward: z.number().default(0),
  f1_threshold: z.number().min(0).max(1).default(0.3),
  render_mode: z.literal('text').default('text'),
});
type Config = z.infer<typeof config>;

const actionsLine = 'Available actions: search[<query>], finish[<answer>]';
/** Timeout in milliseconds for the first search, which embeds the whole corpus. */
const indexingMs = 600_000;
/** Maximum characters of a passage in an observation. */
const passageChars = 800;
const shipped = (name: string) => fileURLToPath(new URL(`../../media/data/search/${name}.jsonl`, import.meta.url));

const serverOf = ({ mock_mode, retrieval_server_url }: Config) =>
  mock_mode ? undefined : (retrieval_server_url ?? process.env.RETRIEVAL_SERVER_URL);

interface Question {
  question: string;
  right: string[];
  /** Queries that return the passages with the answer; set only for the built-in questions. */
  queries: string[];
}

const remedy =
  'set env_config.train_path to a Parquet or JSON Lines file with the columns "question" and "ground_truth", or to null for the shipped questions';
async function questionOf(
  { train_path, val_path, max_instances }: Config,
  seed: number,
  mode: string,
): Promise<Question> {
  const own = mode === 'val' ? val_path : null;
  const path = own ?? train_path ?? shipped(mode === 'val' ? 'val' : 'train');
  const rows = await openDataSet(path, { split: own === null ? 'train' : 'validation', remedy });
  const { question, ground_truth, queries } = await rows.row(seed % Math.min(rows.length, max_instances));
  const right = (Array.isArray(ground_truth) ? ground_truth : [ground_truth]).map(String);
  if (typeof question !== 'string' || ground_truth === undefined)
    throw new MissingDependency(`cannot use ${path}, which lacks the columns "question" and "ground_truth"`, remedy);
  return { question, right, queries: Array.isArray(queries) ? queries.map(String) : [] };
}

const cut = (text: string, limit: number) => (text.length > limit ? `${text.slice(0, limit)}...` : text);

/** Returns the passages in the format that the model sees. */
function shown(found: Found[] | string, limit: number): string {
  if (typeof found === 'string') return found;
  if (found.length === 0) return 'No documents match the query.';
  const passages = found.map(
    ({ id, content, score }, i) =>
      `[Document ${i + 1}] (ID: ${id}, Score: ${score.toFixed(3)})\n${cut(content, passageChars)}`,
  );
  return cut(passages.join('\n\n'), limit);
}

export default defineEnvironment({
  name: 'search',
  config,
  instruction:
    'You answer questions by searching. search[words] looks documents up, finish[text] gives the final answer, as short as it can be.' +
    ' Take one action at a time, for example <answer>search[birthplace of the author of Frankenstein]</answer>' +
    ' and later <answer>finish[London]</answer>.',
  patience(config) {
    if (serverOf(config) !== undefined) return config.retrieval_timeout * 1000 + 5000;
    return config.embedding_model === null ? 0 : indexingMs;
  },

  async dependencies(config) {
    for (const mode of ['train', 'val'] as const) await questionOf(config, 0, mode);
    const server = serverOf(config);
    if (server === undefined) {
      await searchCorpus(config.corpus_path ?? shipped('corpus'), '', 1);
      if (config.embedding_model !== null) await embedderOf(config.embedding_model);
    } else if (!(await healthy(server)))
      throw new MissingDependency(
        `cannot reach a retrieval server at ${server}`,
        'start the server there, or set env_config.mock_mode to true to search the corpus in memory',
      );
  },

  create(config) {
    const server = serverOf(config);
    const corpus = config.corpus_path ?? shipped('corpus');
    let asked: Question;
    let steps = 0;
    let answered = false;
    let observation = '';

    const search = (query: string) => {
      const { embedding_model, max_search_results: limit, retrieval_timeout } = config;
      if (server !== undefined) return retrieve(server, query, limit, retrieval_timeout * 1000);
      return embedding_model === null
        ? searchCorpus(corpus, query, limit)
        : searchDense(corpus, embedding_model, query, limit);
    };

    /** The result of a step that does not answer the question. At the step limit, this result truncates the episode. */
    const continueWith = (text: string, info: Record<string, unknown>): StepResult => {
      const truncated = steps >= config.max_steps;
      observation = `${text}\n${truncated ? 'That was the last step: the episode ends without an answer.' : actionsLine}`;
      return { observation, reward: 0, terminated: false, truncated, info: { ...info, success: false } };
    };
    const finish = (answer: string, valid: boolean): StepResult => {
      answered = true;
      const { exact, f1 } = scoreAnswer(answer, asked.right);
      const reward = exact
        ? config.correct_reward
        : f1 >= config.f1_threshold
          ? config.correct_reward * f1
          : config.incorrect_reward;
      observation = `Your answer${valid ? '' : ' (taken from your text)'}: ${answer}. Reward: ${reward.toFixed(2)}`;
      const info = { action_is_valid: valid, action_is_effective: true, success: exact || reward > 0 };
      return { observation, reward, terminated: true, truncated: false, info: { ...info, exact_match: exact, f1 } };
    };

    return {
      async reset({ seed, mode = 'train' }) {
        asked = await questionOf(config, seed, mode);
        steps = 0;
        answered = false;
        observation = `Question: ${asked.question}\n${actionsLine}`;
        return { observation };
      },

      async step(action) {
        if (answered || steps >= config.max_steps) {
          const info = { action_is_valid: false, action_is_effective: false, success: false };
          return { observation, reward: 0, terminated: answered, truncated: !answered, info };
        }
        steps++;
        const text = String(action).trim();
        const [, verb, argument] = /^(search|finish)\[(.*)\]$/s.exec(text) ?? [];
        if (verb === 'finish') return finish(argument, true);
        if (verb === 'search') {
          const results = shown(await search(argument), config.max_total_chars);
          const info = { action_is_valid: true, action_is_effective: true };
          return continueWith(`Search results for '${argument}':\n${results}\n`, info);
        }
        if (text !== '') return finish(answerIn(text), false);
        const info = { action_is_valid: false, action_is_effective: false };
        return continueWith('That is no action: write search[<query>] to search or finish[<answer>] to answer.', info);
      },

      render: () => observation,
      solve: () => (answered ? [] : [...asked.queries.map(query => `search[${query}]`), `finish[${asked.right[0]}]`]),
    };
  },
});
