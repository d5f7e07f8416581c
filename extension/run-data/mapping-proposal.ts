// A proposed mapping for JSON lines whose fields have unusual names: which field of the file has which meaning, and the
// fields to choose from. The CLI makes the proposal (foreign-runs/mapping-guess.ts) and prints it, the editor lets the
// user correct it; both write it as the YAML file that `ragen attach --mapping` reads.
import { stringify } from 'yaml';
import { z } from 'zod';
import { UserError } from '../common/user-error';

/** Meanings of fields. In this order they are shown, and written to a mapping. */
export const fieldMeanings = [
  'step',
  'messages',
  'prompt',
  'completion',
  'reward',
  'success',
  'group',
  'tag',
  'advantage',
  'time',
] as const;
export type FieldMeaning = (typeof fieldMeanings)[number];

/**
 * `mapping.json` of a run folder, and the file of `--mapping`: names that the user gives for files whose trainer is
 * unknown.
 */
export const mappingSchema = z.strictObject({
  fields: z
    .partialRecord(z.string(), z.string())
    .optional()
    .describe('fields of the file by meaning; a dot leads into an object, and an empty text means that there is none'),
  metrics: z.record(z.string(), z.string()).optional().describe('RAGEN’s names of metrics by the names in the file'),
});
export type Mapping = z.infer<typeof mappingSchema>;

export const fileFieldSchema = z.object({
  path: z.string().describe('name of the field; a dot leads into an object'),
  kind: z.enum(['number', 'flag', 'text', 'messages', 'other']),
  samples: z.array(z.string()).describe('the values in the first lines as text, shortened'),
  metric: z.string().optional().describe('name of the metric that the field is in a file of metrics; only for numbers'),
});
export type FileField = z.infer<typeof fileFieldSchema>;

/** Kinds that a field of a meaning can have. */
export const fieldKinds: Readonly<Record<FieldMeaning, readonly FileField['kind'][]>> = {
  step: ['number', 'text'],
  messages: ['messages'],
  prompt: ['text', 'messages'],
  completion: ['text', 'messages'],
  reward: ['number'],
  success: ['flag', 'number'],
  group: ['text', 'number'],
  tag: ['text'],
  advantage: ['number'],
  time: ['number', 'text'],
};

export const mappingProposalSchema = z.object({
  file: z.string().describe('the file that was looked at, relative to the given folder'),
  contents: z.enum(['rollouts', 'metrics']),
  fields: z.array(fileFieldSchema),
  mapping: mappingSchema,
});
export type MappingProposal = z.infer<typeof mappingProposalSchema>;

/** The fields of JSON lines were not recognised. */
export class UnmappedFields extends UserError {
  constructor(
    message: string,
    readonly proposal: MappingProposal,
  ) {
    super(message);
  }
}

/** Returns why files cannot be read with a mapping, as a clause; undefined if they can. */
export function mappingProblem({
  contents,
  mapping,
}: Pick<MappingProposal, 'contents' | 'mapping'>): string | undefined {
  const { fields = {} } = mapping;
  if (contents === 'metrics') return fields.step ? undefined : 'choose the field of the step';
  if (!fields.messages && !fields.completion) return 'choose the field of the messages or of the completion';
  return fields.reward ? undefined : 'choose the field of the reward';
}

/** Returns a mapping as YAML; each line of `comments` is a comment before it. */
export function mappingYaml({ fields = {}, metrics = {} }: Mapping, comments: readonly string[] = []): string {
  const given = fieldMeanings.filter(meaning => fields[meaning] !== undefined);
  const parts = {
    fields: Object.fromEntries(given.map(meaning => [meaning, fields[meaning]])),
    ...(Object.keys(metrics).length > 0 && { metrics }),
  };
  // A name in the file may contain line breaks.
  const lines = comments.map(line => `# ${line.replace(/[\p{Cc}\u2028\u2029]/gu, ' ')}\n`);
  return [...lines, stringify(parts, { lineWidth: 0 })].join('');
}

/** Returns comments for a proposed mapping: the first value of each field, by which the proposal can be checked. */
export function mappingComments({ file, fields, mapping }: MappingProposal): string[] {
  const meaningOf = (path: string): string | undefined =>
    Object.entries(mapping.fields ?? {}).find(([, field]) => field === path)?.[0];
  return [
    `Fields of ${file}, with the values in the first line:`,
    ...fields.map(({ path, samples }) => {
      const meaning = meaningOf(path);
      return `  ${path}${meaning === undefined ? '' : ` (${meaning})`}: ${samples[0] ?? ''}`;
    }),
    `Meanings: ${fieldMeanings.join(', ')}.`,
  ];
}
