// Any JSON objects: a proposal names only fields of the file, each at most once, and survives YAML.
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { proposalFor } from '../../../extension/foreign-runs/mapping-guess';
import {
  fieldMeanings,
  mappingComments,
  mappingProposalSchema,
  mappingSchema,
  mappingYaml,
} from '../../../extension/run-data/mapping-proposal';

const key = fc.oneof(
  fc.constantFrom(
    'step',
    'it',
    'reward',
    'points',
    'answer',
    'q',
    'messages',
    'group_id',
    'time',
    '__proto__',
    'a.b',
    '',
  ),
  fc.string({ maxLength: 12, unit: 'binary' }),
);
const value = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.integer({ min: 0, max: 9 }),
  fc.constantFrom('a text with words', [{ role: 'user', content: 'x' }]),
);
const record = fc.dictionary(key, value, { maxKeys: 12 }) as fc.Arbitrary<Record<string, unknown>>;

it('proposals are consistent', () => {
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 5 }), records => {
      const proposal = proposalFor('a.jsonl', records);
      if (!proposal) return;
      expect(mappingProposalSchema.parse(JSON.parse(JSON.stringify(proposal)))).toEqual(proposal);
      const chosen = Object.entries(proposal.mapping.fields ?? {});
      const paths = proposal.fields.map(({ path }) => path);
      expect(
        chosen.every(([meaning, path]) => fieldMeanings.some(each => each === meaning) && paths.includes(path ?? '')),
      ).toBe(true);
      expect(new Set(chosen.map(([, path]) => path)).size).toBe(chosen.length);
      const text = mappingYaml(proposal.mapping, mappingComments(proposal));
      const read = mappingSchema.parse(parse(text));
      expect(read.fields).toEqual(proposal.mapping.fields);
      expect(read.metrics ?? {}).toEqual(proposal.mapping.metrics ?? {});
    }),
    { numRuns: 500 },
  );
});
