// `ragen generate`: continues prompts by sampling from a model. Each row has its own random stream, derived from --seed
// and the row's index. The tokens of a row therefore do not depend on other rows or on batching.
import type { Command } from 'commander';
import { appendAll } from '../../common/lists';
import { UserError } from '../../common/user-error';
import type { GeneratedRow, SamplingOptions } from '../../engine/generation-calls';
import { readEosTokenIds } from '../../models/weights/model-folder';
import { deriveSeed } from '../../trainer/rollout/seeds';
import { answer } from '../output/answer';
import { number, wholeNumber, withModelOptions } from '../options/model-options';
import type { Parse } from '../options/model-options';
import { withModel } from '../model-files/open-model';
import type { ModelFlags, OpenModel } from '../model-files/open-model';

/** Number of rows that are generated in one batch. */
const rowsAtOnce = 32;

interface GenerateFlags extends ModelFlags {
  seed: number;
  maxNewTokens: number;
  temperature: number;
  topP: number;
  topK: number;
  minP: number;
  repetitionPenalty: number;
  stop: string[];
  greedy: boolean;
}

interface ContinuedRow {
  prompt_tokens: number[];
  /** Sampled ids, including the id that ended the row. */
  tokens: number[];
  /** Natural log of each token's probability at the given temperature, before truncation (top-p, top-k, min-p). */
  logprobs: number[];
  /** The sampled text without special tokens; null if the model folder has no tokenizer. */
  text: string | null;
  finish: GeneratedRow['finish'];
}

export function addGenerate(program: Command): void {
  withModelOptions(program.command('generate').description('continue prompts by sampling'))
    .requiredOption('--seed <number>', 'seed of the random numbers for sampling', wholeNumber('--seed', 0))
    .option('--max-new-tokens <count>', 'maximum number of new tokens per row', wholeNumber('--max-new-tokens', 1), 256)
    .option(
      '--temperature <number>',
      'sampling temperature, by which the logits are divided',
      above0('--temperature'),
      1,
    )
    .option(
      '--top-p <share>',
      'sample only from the most likely tokens whose probabilities add up to this number; 1 disables this limit',
      share('--top-p'),
      1,
    )
    .option(
      '--top-k <count>',
      'number of most likely tokens to sample from; 0 disables this limit',
      wholeNumber('--top-k', 0),
      0,
    )
    .option(
      '--min-p <share>',
      'minimum probability of a token, as a share of the most likely token’s probability; 0 disables this limit',
      fraction('--min-p'),
      0,
    )
    .option(
      '--repetition-penalty <number>',
      'for tokens that have already occurred: positive logits are divided, and negative logits multiplied, by this number; 1 disables this penalty',
      above0('--repetition-penalty'),
      1,
    )
    .option('--stop <text...>', 'end a row when its text contains one of these texts', [])
    .option('--greedy', 'always take the most likely token', false)
    .addHelpText(
      'after',
      `
Input: a JSON array (or one object per line) of {"tokens": [id, …]} or {"messages": [{"role", "content"}, …]}. Messages are
rendered with the model's chat template, with a generation prompt.
Output with --json: an array of {"prompt_tokens", "tokens", "logprobs", "text", "finish"} in the input's order. finish is "stop" (the
model ended its answer) or "length". A row's tokens depend only on the
model, --seed, and the row's prompt and index.`,
    )
    .action((flags: GenerateFlags & { json?: boolean }) =>
      answer(flags, async () => {
        const rows = await generate(flags);
        const listing = rows.map(({ text, tokens }, i) => `── ${i} ──\n${text ?? tokens.join(' ')}`).join('\n');
        return { document: rows, plainText: listing };
      }),
    );
}

/** Continues every row of the input. Throws a UserError. */
function generate(flags: GenerateFlags): Promise<ContinuedRow[]> {
  return withModel(flags, true, async model => {
    const { engine, prompts, tokenizer } = model;
    const sampling = samplingFor(flags, model);
    const rows: ContinuedRow[] = [];
    for (let from = 0; from < prompts.length; from += rowsAtOnce) {
      const part = prompts.slice(from, from + rowsAtOnce);
      const requests = part.map(({ ids }, k) => ({
        row: String(from + k),
        append: ids,
        seed: deriveSeed('generate', flags.seed, from + k),
      }));
      const generated = await engine.generate(requests, sampling);
      await engine.release(requests.map(({ row }) => row));
      appendAll(
        rows,
        generated.map(({ ids, logprobs, finish }, k): ContinuedRow => ({
          prompt_tokens: part[k].ids,
          tokens: ids,
          logprobs: logprobs.map(x => finite(x, part[k].location, flags.model)),
          text: tokenizer?.decode(ids) ?? null,
          finish,
        })),
      );
    }
    return rows;
  });
}

function samplingFor(flags: GenerateFlags, { config, folder, tokenizer }: OpenModel): SamplingOptions {
  if (flags.stop.length > 0 && !tokenizer)
    throw new UserError(
      `${folder}: --stop needs a tokenizer, which this folder lacks: add tokenizer.json to the folder`,
    );
  return {
    temperature: flags.temperature,
    top_p: flags.topP,
    top_k: flags.topK,
    min_p: flags.minP,
    repetition_penalty: flags.repetitionPenalty,
    stop: flags.stop,
    do_sample: !flags.greedy,
    max_new_tokens: flags.maxNewTokens,
    stop_token_ids: tokenizer?.stopTokenIds ?? readEosTokenIds(folder),
    max_model_len: config.maxPositions,
  };
}

function finite(logprob: number, location: () => string, model: string): number {
  if (Number.isFinite(logprob)) return Number(logprob.toPrecision(9));
  throw new UserError(
    `${location()}: the log-probability of a sampled token is ${logprob}, because the weights of ${model} overflow float32: use another model`,
  );
}

const above0 = (option: string): Parse<number> => number(option, x => x > 0, 'above 0');
const share = (option: string): Parse<number> => number(option, x => x > 0 && x <= 1, 'above 0 and up to 1');
const fraction = (option: string): Parse<number> => number(option, x => x >= 0 && x < 1, 'from 0 to below 1');
