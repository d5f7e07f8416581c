// Questions of a data set with fixed answers (RAGEN's static): MetaMathQA by text, GSM8K by number, MMLU's abstract algebra by letter. A
// right answer earns 1, half as much after each wrong one. Works out of the box with questions of our own in the same forms
// (media/data); the real ones come from a file, a folder or the hub.
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { openDataSet } from '../api/data-set';
import { defineEnvironment, MissingDependency } from '../api/environment';
import { questionEpisode } from '../metamathqa/question-episode';
import { scorings } from './scoring';

const config = z.strictObject({
  dataset_name: z.enum(['metamathqa', 'gsm8k', 'mmlu']).default('metamathqa').describe('form of rows and answers'),
  dataset_path: z
    .string()
    .nullable()
    .default(null)
    .describe('file or folder with such rows, or a data set of the hub; null: the shipped questions'),
  cache_dir: z.string().default('./data').describe("without effect: downloads lie in the hub's own cache"),
  split: z.string().nullable().default(null).describe('null: train, but test of mmlu, which has no train'),
});
type Config = z.infer<typeof config>;

/** Of each form: the shipped file, RAGEN's data set at the hub with its configuration, and the split that it takes. */
const sources = {
  metamathqa: { file: 'metamathqa.jsonl', hub: 'meta-math/MetaMathQA', configuration: undefined, split: 'train' },
  gsm8k: { file: 'gsm8k.jsonl', hub: 'openai/gsm8k', configuration: 'main', split: 'train' },
  mmlu: { file: 'abstract-algebra.jsonl', hub: 'cais/mmlu', configuration: 'abstract_algebra', split: 'test' },
};

function open({ dataset_name, dataset_path, split }: Config) {
  const { file, configuration, split: usual } = sources[dataset_name];
  const path = dataset_path ?? fileURLToPath(new URL(`../../media/data/${file}`, import.meta.url));
  return openDataSet(path, { configuration, split: split ?? usual, remedy: remedy(dataset_name) });
}

const remedy = (name: Config['dataset_name']) =>
  `give env_config.dataset_path a file or folder with rows as ${sources[name].hub} has them, ${sources[name].hub} itself, or null for the shipped questions`;

export default defineEnvironment({
  name: 'static',
  config,
  instruction: ({ dataset_name }) =>
    dataset_name === 'mmlu'
      ? 'Answer the question with the letter of the right choice alone, for example <answer> B </answer>.'
      : 'Solve the problem. Answer with the result alone, for example <answer> 42 </answer>.',
  dependencies: async config => void (await open(config)),

  create(config) {
    const { question, judge } = scorings[config.dataset_name];
    return questionEpisode({
      open: () => open(config),
      question(row) {
        const found = question(row);
        if (!found)
          throw new MissingDependency(
            `finds a row without the columns of ${config.dataset_name}`,
            remedy(config.dataset_name),
          );
        return found;
      },
      judge: (given, answer) => judge(given, answer!),
      namesValidity: true,
    });
  },
});
