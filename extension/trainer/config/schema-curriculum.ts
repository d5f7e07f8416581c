// Schema of the curriculum over environment tags (algorithms/curriculum.ts, docs/CURRICULUM.md).
import { z } from 'zod';
import { share } from './schema-policy';

const weight = (about: string) =>
  z.number().min(0).describe(`${about}, relative to the tag's configured share; each tag keeps at least one group.`);

export const curriculum = z
  .strictObject({
    easy_above: share('Success rate at which a tag becomes easy.').default(0.9),
    hard_below: share('Success rate at which a tag becomes hard.').default(0.1),
    hysteresis: share(
      'How far the success rate must move back over this limit before the tag is normal again.',
    ).default(0.05),
    decay: z
      .number()
      .min(0)
      .lt(1)
      .describe('Weight of the earlier steps in the moving average of the success rate.')
      .default(0.8),
    easy_weight: weight('Groups of an easy tag').default(0.25),
    hard_weight: weight('Groups of a hard tag').default(0.5),
  })
  .describe(
    'Changes the number of groups of each training tag after each step, by the success rate of its training episodes; null is off (docs/CURRICULUM.md).',
  );
