// `ragen score`: computes the log-probabilities of given tokens under a model. Contract: a row's `logprobs` is as long
// as its `tokens`; entry 0 is null, because no token precedes it. Entry t is the natural log of the probability of
// tokens[t] given tokens[0 … t−1], at temperature 1. Rows of similar length share a forward pass; results are in input
// order.
import type { Command } from 'commander';
import { UserError } from '../../common/user-error';
import { answer } from '../output/answer';
import { withModelOptions } from '../options/model-options';
import { withModel } from '../model-files/open-model';
import type { ModelFlags } from '../model-files/open-model';

/** Maximum tokens per forward pass, including padding. */
const tokensAtOnce = 4096;

interface ScoredRow {
  tokens: number[];
  /** One log-probability per token; the first is null. */
  logprobs: (number | null)[];
}

export function addScore(program: Command): void {
  withModelOptions(program.command('score').description('compute the log-probabilities of given tokens or messages'))
    .addHelpText(
      'after',
      `
Input: a JSON array (or one object per line) of {"tokens": [id, …]} or {"messages": [{"role", "content"}, …]}. Messages are
rendered with the model's chat template, without a generation prompt.
Output with --json: an array of {"tokens": [id, …], "logprobs": [null, number, …]} in the input's order. logprobs has the length of
tokens; logprobs[0] is null, logprobs[t] is ln P(tokens[t] | tokens before it) at temperature 1.`,
    )
    .action((flags: ModelFlags & { json?: boolean }) =>
      answer(flags, async () => {
        const rows = await score(flags);
        return { document: rows, plainText: formatRows(rows) };
      }),
    );
}

/** Scores every row of the input. Throws a UserError. */
function score(flags: ModelFlags): Promise<ScoredRow[]> {
  return withModel(flags, false, async ({ engine, prompts }) => {
    const several = prompts.filter(({ ids }) => ids.length > 1); // a single token has no score
    const samples = several.map(({ ids }) => ({
      ids: Int32Array.from(ids),
      mask: new Uint8Array(ids.length).fill(1, 1),
    }));
    const { logprobs } = await engine.score('actor', samples, { maxTokens: tokensAtOnce, maxRows: samples.length }, 1);
    const found = new Map(several.map((prompt, k) => [prompt, logprobs[k]]));
    const rows = prompts.map((prompt): ScoredRow => {
      const scores = found.get(prompt) ?? new Float32Array(1);
      const bad = scores.findIndex(x => !Number.isFinite(x));
      if (bad >= 0)
        throw new UserError(
          `${prompt.location()}: the log-probability of token ${bad} is ${scores[bad]}, because the weights of ${flags.model} overflow float32: use another model`,
        );
      return { tokens: prompt.ids, logprobs: [null, ...Array.from(scores.subarray(1), shortest)] };
    });
    return rows;
  });
}

/** Rounds a float32 to nine significant digits, which identify every float32. */
const shortest = (x: number): number => Number(x.toPrecision(9));

function formatRows(rows: readonly ScoredRow[]): string {
  const lines = rows.map(({ tokens, logprobs }, i) => {
    const scores = logprobs.filter(x => x !== null);
    const sum = scores.reduce((total, x) => total + x, 0);
    const mean = scores.length > 0 ? (sum / scores.length).toFixed(4) : '';
    return [String(i).padStart(5), String(tokens.length).padStart(8), sum.toFixed(4).padStart(14), mean.padStart(10)];
  });
  return [['  row', '  tokens', '  log-prob sum', ' per token'], ...lines].map(cells => cells.join(' ')).join('\n');
}
