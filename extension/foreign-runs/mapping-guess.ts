// Guesses which fields of JSON lines have which meaning, from their names, types and values in the first lines. A guess
// is only proposed to the user (run-data/mapping-proposal.ts); nothing is read with it unasked.
import { isRecord } from '../common/json';
import {
  fieldKinds,
  fieldMeanings,
  type FieldMeaning,
  type FileField,
  type MappingProposal,
} from '../run-data/mapping-proposal';
import { fieldNames } from './field-names';
import { looseRecord, stepOf } from './json-rows';
import { firstBytes } from './peek';
import type { SourceFolder } from './source-folder';

/** Maximum number of files, lines and fields that are looked at, and characters of a sample. */
const [mostFiles, mostLines, mostFields, mostSample] = [20, 20, 200, 120];

interface Candidate extends FileField {
  values: unknown[];
}

/** Returns a proposal for the first file whose fields can be guessed; undefined if there is none. */
export async function proposedMapping(source: SourceFolder): Promise<MappingProposal | undefined> {
  for (const { name } of source.matching(/\.(?:jsonl|ndjson)$/).slice(0, mostFiles)) {
    const records = await firstRecords(source, name);
    const proposal = records.length > 0 ? proposalFor(name, records) : undefined;
    if (proposal) return proposal;
  }
  return undefined;
}

async function firstRecords(source: SourceFolder, name: string): Promise<Record<string, unknown>[]> {
  const text = (await firstBytes(source, name)).toString('utf8');
  const lines = text.split('\n').slice(0, mostLines);
  return lines.map(looseRecord).filter(record => record !== undefined);
}

/** Returns the proposal for the records of a file; undefined if they are neither rollouts nor metrics. */
export function proposalFor(file: string, records: readonly Record<string, unknown>[]): MappingProposal | undefined {
  const candidates = candidatesOf(records);
  const fields = assigned(candidates);
  const hasTexts = fields.messages !== undefined || fields.completion !== undefined;
  const hasNumbers = candidates.some(({ kind, path }) => kind === 'number' && path !== fields.step);
  if (!hasNumbers || (!hasTexts && fields.step === undefined)) return undefined;
  const about = { file, fields: candidates.map(({ values: _, ...field }) => field) };
  if (hasTexts) return { ...about, contents: 'rollouts', mapping: { fields } };
  const own = { step: fields.step ?? '', ...(fields.time !== undefined && { time: fields.time }) };
  return { ...about, contents: 'metrics', mapping: { fields: own, metrics: metricNames(candidates) } };
}

/** Returns the fields of the records, with those of objects one level deep. */
function candidatesOf(records: readonly Record<string, unknown>[]): Candidate[] {
  const found = new Map<string, { metric: string; values: unknown[] }>();
  const add = (path: string, metric: string, value: unknown): void => {
    if (!found.has(path) && found.size >= mostFields) return;
    const field = found.get(path) ?? { metric, values: [] };
    field.values.push(value);
    found.set(path, field);
  };
  for (const record of records)
    for (const [key, value] of Object.entries(record)) {
      if (!isRecord(value)) add(key, key, value);
      else for (const [inner, each] of Object.entries(value)) add(`${key}.${inner}`, metricIn(key, inner), each);
    }
  return [...found].map(([path, { metric, values }]) => {
    const kind = kindOf(values);
    return { path, kind, samples: values.slice(0, 3).map(sampleOf), values, ...(kind === 'number' && { metric }) };
  });
}

/** Name of a metric in an object, as adapters/json-lines.ts names it. */
const metricIn = (key: string, inner: string): string => (key === 'data' ? inner : `${key}/${inner}`);

function kindOf(values: readonly unknown[]): FileField['kind'] {
  const known = values.filter(value => value !== null);
  const all = (is: (value: unknown) => boolean): boolean => known.length > 0 && known.every(is);
  if (all(value => typeof value === 'number')) return 'number';
  if (all(value => typeof value === 'boolean')) return 'flag';
  if (all(value => typeof value === 'string')) return 'text';
  if (all(value => Array.isArray(value) && value.some(each => isRecord(each) && typeof each['role'] === 'string')))
    return 'messages';
  return 'other';
}

function sampleOf(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  const line = text
    .slice(0, 4 * mostSample)
    .replace(/\s+/g, ' ')
    .trim();
  return line.length > mostSample ? `${line.slice(0, mostSample - 1)}…` : line;
}

/** Words in the names of fields, for each meaning; earlier ones are better. Names are compared word by word. */
const words: Readonly<Record<FieldMeaning, readonly RegExp[]>> = {
  step: [/^(?:step|steps|iteration|iter)$/, /^(?:it|update|updates|batch|epoch|round)$/],
  messages: [/^(?:messages|conversation|chat|dialog|dialogue|history|trajectory|turns)$/],
  prompt: [/^(?:prompt|question|query|input|instruction)$/, /^(?:problem|task|context|observation|state|q)$/],
  completion: [
    /^(?:completion|response|output|generation|answer|reply)$/,
    /^(?:generated|prediction|sample|text|assistant|a)$/,
  ],
  reward: [/^(?:reward|rewards|return)$/, /^(?:score|points|grade|rating|utility)$/],
  success: [/^(?:success|succeeded|solved|correct|won)$/, /^(?:acc|accuracy|pass|passed|ok)$/],
  group: [/^(?:group|uid)$/, /^(?:example|problem|question|prompt|task|instance)$/],
  tag: [/^(?:env|environment|dataset)$/, /^(?:source|domain|task|game)$/],
  advantage: [/^(?:advantage|advantages|adv)$/],
  time: [/^(?:time|timestamp|ts|date|datetime)$/, /^(?:at|created|recorded)$/],
};

/** Gives each meaning the field with the highest score; each field has at most one meaning. */
function assigned(candidates: readonly Candidate[]): Partial<Record<FieldMeaning, string>> {
  const scored = fieldMeanings.flatMap(meaning =>
    candidates.map(candidate => ({ meaning, path: candidate.path, score: scoreOf(meaning, candidate) })),
  );
  const fields: Partial<Record<FieldMeaning, string>> = {};
  const used = new Set<string>();
  for (const { meaning, path, score } of scored.sort((a, b) => b.score - a.score)) {
    if (score <= 0 || fields[meaning] !== undefined || used.has(path)) continue;
    // Messages are the complete conversation, so there is no prompt or completion beside them.
    if (fields.messages !== undefined && (meaning === 'prompt' || meaning === 'completion')) continue;
    if (meaning === 'messages' && (fields.prompt !== undefined || fields.completion !== undefined)) continue;
    fields[meaning] = path;
    used.add(path);
  }
  return fields;
}

/** Returns how well a field fits a meaning; 0 if it does not. */
function scoreOf(meaning: FieldMeaning, { path, kind, values }: Candidate): number {
  if (!fieldKinds[meaning].includes(kind)) return 0;
  const usual = fieldNames[meaning].indexOf(path);
  const name = usual >= 0 ? 20 - usual : wordScore(meaning, path);
  const fit = valueScore(meaning, kind, values);
  if (fit < 0) return 0;
  // A list of messages is recognised by its contents; every other meaning needs a fitting name.
  return name === 0 && meaning !== 'messages' ? 0 : name + fit;
}

function wordScore(meaning: FieldMeaning, path: string): number {
  const parts = path
    .replace(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter(part => part !== '');
  const rank = words[meaning].findIndex(pattern => parts.some(part => pattern.test(part)));
  if (rank < 0) return 0;
  // `problem_id` is a group rather than a prompt; of the rest, `answer` fits better than `answer_text_length`.
  const isId = parts.at(-1) === 'id' || parts.at(-1) === 'index' || parts.at(-1) === 'idx';
  if (isId && meaning !== 'group') return 0;
  return 8 - 3 * rank - Math.min(3, parts.length) + (isId ? 2 : 0);
}

/** Returns how well the values fit; below 0 if they cannot have the meaning. */
function valueScore(meaning: FieldMeaning, kind: FileField['kind'], values: readonly unknown[]): number {
  const known = values.filter(value => value !== null && value !== undefined);
  switch (meaning) {
    case 'step':
      return known.every(value => stepOf(value) !== undefined) ? 2 : -1;
    case 'messages':
      return 4;
    case 'prompt':
    case 'completion':
      return kind === 'text' && !known.some(value => String(value).includes(' ')) ? 0 : 2;
    case 'reward':
      return 2;
    case 'success':
      return kind === 'flag' ? 3 : known.every(value => value === 0 || value === 1) ? 1 : -1;
    case 'group':
      return kind === 'text' && known.some(value => String(value).length > 200)
        ? -1
        : new Set(known).size < known.length
          ? 3
          : 0;
    case 'tag':
      return known.some(value => String(value).length > 60) ? -1 : new Set(known).size <= 5 ? 2 : 0;
    case 'advantage':
      return 2;
    case 'time':
      return known.every(value => isTime(value)) ? 2 : -1;
  }
}

/** Whether a value is a time of this century: seconds since 1970, or an ISO text. */
function isTime(value: unknown): boolean {
  const ms = typeof value === 'number' ? value * 1000 : Date.parse(String(value));
  return ms > 946_684_800_000 && ms < 4_102_444_800_000;
}

/** RAGEN's names of metrics by usual names in logs, lower-case, without prefixes such as `train/`. */
const metrics: ReadonlyMap<string, string> = new Map([
  ['reward', 'critic/score/mean'],
  ['reward_mean', 'critic/score/mean'],
  ['mean_reward', 'critic/score/mean'],
  ['avg_reward', 'critic/score/mean'],
  ['score', 'critic/score/mean'],
  ['points', 'critic/score/mean'],
  ['entropy', 'actor/entropy'],
  ['policy_entropy', 'actor/entropy'],
  ['grad_norm', 'actor/grad_norm'],
  ['gradient_norm', 'actor/grad_norm'],
  ['lr', 'actor/lr'],
  ['learning_rate', 'actor/lr'],
  ['pg_loss', 'actor/pg_loss'],
  ['policy_loss', 'actor/pg_loss'],
  ['clip_frac', 'actor/pg_clipfrac'],
  ['clipfrac', 'actor/pg_clipfrac'],
  ['response_length', 'response_length/mean'],
  ['completion_length', 'response_length/mean'],
  ['mean_length', 'response_length/mean'],
  ['success', 'train/rollout/success'],
  ['success_rate', 'train/rollout/success'],
  ['group_reward_std', 'rollout/in_group_reward_std'],
]);
/** Names of validations. */
const validations: ReadonlyMap<string, string> = new Map([
  ['success', 'val-env/rollout/success'],
  ['success_rate', 'val-env/rollout/success'],
  ['accuracy', 'val-env/rollout/success'],
]);

function metricNames(candidates: readonly Candidate[]): Record<string, string> {
  const names: Record<string, string> = {};
  const used = new Set<string>();
  for (const { metric } of candidates) {
    if (metric === undefined) continue;
    const parts = /^(?:(train|training|val|valid|validation|eval|test)[/._-])?(.*)$/i.exec(metric);
    const isValidation = parts?.[1] !== undefined && !/^train/i.test(parts[1]);
    const name = (parts?.[2] ?? '').toLowerCase().replace(/[^a-z]+/g, '_');
    const known = (isValidation ? validations : metrics).get(name);
    if (known === undefined || used.has(known)) continue;
    names[metric] = known;
    used.add(known);
  }
  return names;
}
