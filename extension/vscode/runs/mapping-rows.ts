// The contents of the form in which a proposed mapping is corrected: the rows, the choices of a row, and a preview of
// the first line. Pure functions; must not import `vscode`.
import {
  fieldKinds,
  fieldMeanings,
  type FieldMeaning,
  type FileField,
  type Mapping,
  type MappingProposal,
} from '../../run-data/mapping-proposal';
import { metricName } from '../../run-data/charts/metric-names';

/** A row of the form: a meaning with its field, or a metric of the file with RAGEN's name for it. */
export type MappingRow = { kind: 'field'; meaning: FieldMeaning } | { kind: 'metric'; metric: string };

const ofRollouts = fieldMeanings.filter(meaning => meaning !== 'time');
const ofMetrics: readonly FieldMeaning[] = ['step', 'time'];

/** Returns the rows of a form. */
export function rowsOf({ contents, fields }: MappingProposal): MappingRow[] {
  const meanings = contents === 'rollouts' ? ofRollouts : ofMetrics;
  const metrics = contents === 'rollouts' ? [] : fields.flatMap(({ metric }) => metric ?? []);
  return [
    ...meanings.map((meaning): MappingRow => ({ kind: 'field', meaning })),
    ...metrics.map((metric): MappingRow => ({ kind: 'metric', metric })),
  ];
}

/** Kinds of fields that usually have a meaning. */
const usualKinds: Readonly<Record<FieldMeaning, readonly FileField['kind'][]>> = {
  ...fieldKinds,
  step: ['number'],
};

/** Returns the fields from which the field of a meaning is chosen; those of a usual kind first. */
export function choicesOf(meaning: FieldMeaning, fields: readonly FileField[]): FileField[] {
  const isUsual = ({ kind }: FileField): boolean => usualKinds[meaning].includes(kind);
  return [...fields.filter(isUsual), ...fields.filter(field => !isUsual(field))];
}

/** RAGEN's names from which the name of a metric is chosen. */
export const metricChoices: readonly string[] = [
  'critic/score/mean',
  'critic/rewards/mean',
  'train/rollout/success',
  'val-env/rollout/success',
  'rollout/in_group_reward_std',
  'rollout/filter_kept_ratio',
  'actor/entropy',
  'actor/grad_norm',
  'actor/lr',
  'actor/kl_loss',
  'actor/ppo_kl',
  'actor/pg_loss',
  'actor/pg_clipfrac',
  'critic/vf_loss',
  'critic/vf_explained_var',
  'response_length/mean',
  'response_length/max',
  'response_length/clip_ratio',
  'train/num_turns/mean',
  'timing_s/step',
];

/** `Entropy (actor/entropy)`. */
export const metricLabel = (key: string): string => `${metricName(key)} (${key})`;

/** Returns a mapping in which a meaning has another field; null for none. */
export const withField = (mapping: Mapping, meaning: FieldMeaning, path: string | null): Mapping => ({
  ...mapping,
  fields: { ...mapping.fields, [meaning]: path ?? '' },
});

/** Returns a mapping in which a metric has another name; null for its own. */
export function withMetric(mapping: Mapping, metric: string, name: string | null): Mapping {
  const { [metric]: _, ...others } = mapping.metrics ?? {};
  return { ...mapping, metrics: name === null ? others : { ...others, [metric]: name } };
}

/** Maximum characters of a value in the preview. */
const mostShown = 60;

/** Returns what the first line means with the mapping: `step 3 · reward 0.5 · completion “Down”`. */
export function previewOf({ fields, contents, mapping }: MappingProposal): string {
  const sampleOf = (path: string): string => fields.find(field => field.path === path)?.samples[0] ?? '';
  const shortened = (text: string): string => (text.length > mostShown ? `${text.slice(0, mostShown - 1)}…` : text);
  const named = (contents === 'rollouts' ? ofRollouts : ofMetrics).flatMap(meaning => {
    const path = mapping.fields?.[meaning];
    if (path === undefined || path === '') return [];
    const isText = fields.find(field => field.path === path)?.kind === 'text';
    const value = shortened(sampleOf(path));
    return [`${meaning} ${isText ? `“${value}”` : value}`];
  });
  const isMetric = ({ path, metric }: FileField): boolean => metric !== undefined && path !== mapping.fields?.['step'];
  const metrics = contents === 'rollouts' ? 0 : fields.filter(isMetric).length;
  return [...named, ...(metrics > 0 ? [`${metrics} numbers`] : [])].join(' · ');
}
