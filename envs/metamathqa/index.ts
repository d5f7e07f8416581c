// MetaMathQA (RAGEN): a mathematics problem. A right answer has the reward 1, halved for each wrong answer before it.
// An answer is right if it equals the data set's answer, ignoring case and blanks. The built-in problems are in
// media/data/metamathqa.jsonl; RAGEN uses meta-math/MetaMathQA from the Hugging Face Hub.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { lookForDataSet, openDataSet, openingPatience, type DataSetOptions, type Row } from '../api/data-set';
import { defineEnvironment, MissingDependency } from '../api/environment';
import { questionEpisode, type Question, type Verdict } from './question-episode';

const config = z.strictObject({
  dataset_path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'file or folder with the columns "query" and "response", or a data set of the hub; null: the shipped problems are used',
    ),
  cache_dir: z.string().default('./data').describe('no effect: downloads are stored in the Hugging Face cache'),
  split: z
    .string()
    .default('train')
    .describe('split to read; has an effect only if file names contain the names of splits'),
});

const shipped = fileURLToPath(new URL('../../media/data/metamathqa.jsonl', import.meta.url));
const remedy =
  'set env_config.dataset_path to a file or folder with the columns "query" and "response", to meta-math/MetaMathQA, or to null for the shipped problems';

const source = ({ dataset_path, split }: z.infer<typeof config>): [string, DataSetOptions] => [
  dataset_path ?? shipped,
  { split, remedy },
];

/** The text after "The answer is: " in a solution; null if the solution does not contain this phrase. */
export function answerOf(response: string): string | null {
  return /The answer is: ([\s\S]*)$/.exec(response)?.[1].trim() ?? null;
}

function question({ query, response }: Row): Question {
  if (typeof query !== 'string' || typeof response !== 'string')
    throw new MissingDependency('cannot use a row whose columns "query" and "response" do not contain text', remedy);
  return { text: query, answer: answerOf(response) };
}

const normalized = (text: string) => text.toLowerCase().replace(/\s+/g, '');

function judge(given: string, answer: string | null): Verdict {
  const plain = normalized(given);
  return { right: !!answer && plain === normalized(answer), valid: plain !== '' };
}

export default defineEnvironment({
  name: 'metamathqa',
  config,
  instruction: 'Solve the mathematical problem. Answer with the result alone, for example <answer> 42 </answer>.',
  patience: ({ dataset_path }) => (dataset_path === null ? 0 : openingPatience),
  dependencies: async config => {
    const rows = await lookForDataSet(...source(config));
    if (rows) question(await rows.row(0));
  },
  create: config => questionEpisode({ open: () => openDataSet(...source(config)), question, judge }),
});
