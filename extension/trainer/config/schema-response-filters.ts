// Schema of the filters of degenerate responses (algorithms/degenerate-text.ts). The names and default values are those
// of prime-rl's filters.
import { z } from 'zod';
import { count, flag } from './schema-policy';

const enforce = flag('Whether a step does not train on detected episodes; false only counts them.').default(false);

export const responseFilters = z
  .strictObject({
    gibberish: z
      .strictObject({
        enforce,
        token_id_threshold: z
          .int()
          .min(0)
          .describe('Tokens with a larger id are rare, because BPE tokens are ordered by frequency.')
          .default(100_000),
        logprob_offset: z
          .number()
          .min(0)
          .describe('How far below −ln(vocabulary size) the log-prob of a rare token must be, in nats.')
          .default(2),
      })
      .nullable()
      .describe('Detects rare tokens that were sampled from a nearly uniform distribution; null is off.')
      .default(null),
    repetition: z
      .strictObject({
        enforce,
        window: count('Number of consecutive tokens of a response.').default(3000),
        prob_threshold: z
          .number()
          .gt(0)
          .lt(1)
          .describe('Probability that each of these tokens must exceed.')
          .default(0.99),
      })
      .nullable()
      .describe('Detects loops: long series of tokens that were nearly certain; null is off.')
      .default(null),
  })
  .describe(
    'Detects degenerate responses. Scores of detected episodes stay in their group, so advantages of other episodes do not change.',
  );
