// Questions with fixed answers, from one of three data sets (RAGEN's static environment). Answers are compared as texts
// for MetaMathQA, as numbers for GSM8K, and as letters for MMLU's abstract algebra. A right answer has the reward 1,
// halved for each wrong answer before it. The built-in questions (media/data) have the columns of the original data
// sets. The original data sets are read from a file, a folder or the Hugging Face Hub.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { lookForDataSet, openDataSet, openingPatience, type DataSetOptions, type Row } from '../api/data-set';
import { defineEnvironment, MissingDependency } from '../api/environment';
import { questionEpisode, type Question } from '../metamathqa/question-episode';
import { scorings } from './scoring';

const config = z.strictObject({
  dataset_name: z
    .enum(['metamathqa', 'gsm8k', 'mmlu'])
    .default('metamathqa')
    .describe('data set whose columns are read and whose rules decide whether an answer is right'),
  dataset_path: z
    .string()
    .nullable()
    .default(null)
    .describe(
      'file, folder or hub data set with the columns of the data set that dataset_name names; null: the shipped questions are used',
    ),
  cache_dir: z.string().default('./data').describe('no effect: downloads are stored in the Hugging Face cache'),
  split: z
    .string()
    .nullable()
    .default(null)
    .describe('split to read; null: the split "train" is read, or "test" for mmlu, which has no "train"'),
});
type Config = z.infer<typeof config>;

/** Per data set: the built-in file, RAGEN's data set and configuration on the hub, and the default split. */
const sources = {
  metamathqa: { file: 'metamathqa.jsonl', hub: 'meta-math/MetaMathQA', configuration: undefined, split: 'train' },
  gsm8k: { file: 'gsm8k.jsonl', hub: 'openai/gsm8k', configuration: 'main', split: 'train' },
  mmlu: { file: 'abstract-algebra.jsonl', hub: 'cais/mmlu', configuration: 'abstract_algebra', split: 'test' },
};

function source({ dataset_name, dataset_path, split }: Config): [string, DataSetOptions] {
  const { file, configuration, split: usual } = sources[dataset_name];
  const path = dataset_path ?? fileURLToPath(new URL(`../../media/data/${file}`, import.meta.url));
  return [path, { configuration, split: split ?? usual, remedy: remedy(dataset_name) }];
}

function question(row: Row, { dataset_name }: Config): Question {
  const found = scorings[dataset_name].question(row);
  if (found) return found;
  throw new MissingDependency(`cannot use a row that lacks the columns of ${dataset_name}`, remedy(dataset_name));
}

const remedy = (name: Config['dataset_name']) =>
  `set env_config.dataset_path to a file or folder with the columns of ${sources[name].hub}, to ${sources[name].hub} itself, or to null for the shipped questions`;

export default defineEnvironment({
  name: 'static',
  config,
  instruction: ({ dataset_name }) =>
    dataset_name === 'mmlu'
      ? 'Answer the question with the letter of the right choice alone, for example <answer> B </answer>.'
      : 'Solve the problem. Answer with the result alone, for example <answer> 42 </answer>.',
  patience: ({ dataset_path }) => (dataset_path === null ? 0 : openingPatience),
  dependencies: async config => {
    const rows = await lookForDataSet(...source(config));
    if (rows) question(await rows.row(0), config);
  },
  create: config =>
    questionEpisode({
      open: () => openDataSet(...source(config)),
      question: row => question(row, config),
      judge: (given, answer) => scorings[config.dataset_name].judge(given, answer!),
      namesValidity: true,
    }),
});
