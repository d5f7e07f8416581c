// JSON lines of any script: rows of metrics, and rollouts with messages, or prompt and completion. Fields are found by
// their usual names (field-names.ts); a mapping names the fields that are called otherwise. Lines that look like
// rollouts, but whose fields have unusual names, are not read as metrics.
import { join } from 'node:path';
import { isRecord } from '../../common/json';
import { UserError } from '../../common/user-error';
import { fieldMeanings, type FieldMeaning, type Mapping } from '../../run-data/mapping-proposal';
import type { Adapter, ChatMessage, ForeignEpisode, MetricRow, RolloutUnit } from '../adapter';
import { chatMessages, conversation } from '../chat-turns';
import { fieldNames } from '../field-names';
import { looseRecord, milliseconds, numbersIn, stepOf } from '../json-rows';
import { problemOf } from '../left-out';
import { proposalFor } from '../mapping-guess';
import { configValue, firstRecord, stem } from '../peek';
import { logOf, partsOf, rowSource } from '../row-source';
import type { SourceFolder } from '../source-folder';
import { StepRanges } from '../step-ranges';

/** Maximum number of files that are looked at, and of files that are named one by one. */
const [mostFiles, mostListed] = [1000, 20];

export const jsonLines: Adapter = {
  id: 'json-lines',
  async find(source, mapping) {
    requireKnownFields(mapping);
    const fields = new Fields(mapping);
    const [metrics, rollouts, unmapped]: string[][] = [[], [], []];
    const files = source.matching(/\.(?:jsonl|ndjson)$/);
    for (const { name } of files.slice(0, mostFiles)) {
      const record = await firstRecordOf(source, name);
      if (!record) continue;
      if (fields.isRollout(record)) rollouts.push(name);
      else if (mapping.fields === undefined && hasRollouts(name, record)) unmapped.push(name);
      else if (fields.rowOf(record)) metrics.push(name);
    }
    if (metrics.length + rollouts.length === 0) return null;
    return {
      trainer: { name: 'JSON lines' },
      name: stem(source.path),
      config: {},
      totalSteps: 0,
      found: [...listed('metrics', metrics), ...listed('rollouts', rollouts)],
      missing: [
        ...(metrics.length > 0 ? [] : ['metrics: lines with a step and numbers']),
        ...(rollouts.length + unmapped.length > 0
          ? []
          : ['rollouts: lines with messages, or prompt and completion, and a reward']),
        ...(files.length > mostFiles
          ? [`the last ${files.length - mostFiles} of ${files.length} files: join them, ${mostFiles} are read`]
          : []),
        ...unmapped
          .slice(0, mostListed)
          .map(name => `rollouts in ${name}: its fields have unusual names, give them with --mapping`),
      ],
      rolloutFields: 'messages, or prompt and completion, and a reward; give fields with other names by --mapping',
      rename: name => mapping.metrics?.[name] ?? name,
      metrics: metrics.map(name =>
        rowSource(source, name, line => {
          const record = looseRecord(line);
          return record && fields.rowOf(record);
        }),
      ),
      async rollouts() {
        const logs = rollouts.map(name => partsOf(source, name).map(part => rangesIn(source, part, fields)));
        let more = false;
        const problems: string[] = [];
        for (const each of logs.flat())
          try {
            more = (await each.scan()) || more;
          } catch (error) {
            problems.push(problemOf(error, join(source.root, each.name)));
          }
        return { units: unitsOf(logs, fields), more, problems };
      },
    };
  },
};

/** Returns the first record of a log, also if it was just rotated and has no line yet. */
async function firstRecordOf(source: SourceFolder, name: string): Promise<Record<string, unknown> | undefined> {
  for (const part of partsOf(source, name).reverse()) {
    const record = await firstRecord(source, part);
    if (record) return record;
  }
  return undefined;
}

/** Returns a sentence for each file; of many files, for all of them. */
const listed = (what: string, names: readonly string[]): string[] =>
  names.length > mostListed ? [`${what}: ${names.length} files`] : names.map(name => `${what}: ${name}`);

function requireKnownFields({ fields = {} }: Mapping): void {
  for (const field of Object.keys(fields))
    if (!fieldMeanings.some(meaning => meaning === field))
      throw new UserError(`fields.${field} in the mapping is unknown: use one of ${fieldMeanings.join(', ')}`);
}

/** Whether a record has a text and a reward in fields with unusual names. */
function hasRollouts(name: string, record: Record<string, unknown>): boolean {
  const proposal = proposalFor(name, [record]);
  return proposal?.contents === 'rollouts' && proposal.mapping.fields?.['reward'] !== undefined;
}

/** Reads the fields of a record by the mapping, else by their usual names. */
class Fields {
  constructor(private readonly mapping: Mapping) {}

  get(record: Record<string, unknown>, field: FieldMeaning): unknown {
    const given = this.mapping.fields?.[field];
    for (const name of given === undefined ? fieldNames[field] : [given]) {
      const value = Object.hasOwn(record, name) ? record[name] : configValue(record, name);
      if (value !== undefined) return value;
    }
    return undefined;
  }

  isRollout(record: Record<string, unknown>): boolean {
    const hasText = this.get(record, 'messages') !== undefined || this.get(record, 'completion') !== undefined;
    return hasText && typeof this.get(record, 'reward') === 'number';
  }

  /** Returns the step of a rollout: its field, else the number in the file's name, else 0. */
  stepOf(record: Record<string, unknown>, file: string): number | undefined {
    return stepOf(this.get(record, 'step')) ?? stepOf(/(\d{1,12})(?!.*\d)/.exec(stem(file))?.[1]) ?? 0;
  }

  rowOf(record: Record<string, unknown>): MetricRow | undefined {
    const step = stepOf(this.get(record, 'step'));
    const time = milliseconds(this.get(record, 'time'));
    const { fields = {} } = this.mapping;
    const but = [...fieldNames.step, ...fieldNames.time, fields['step'], fields['time']].filter(
      name => name !== undefined,
    );
    const values = isRecord(record['data']) ? numbersIn(record['data'], but) : withInner(record, but);
    if (step === undefined || Object.keys(values).length === 0) return undefined;
    return { step, ...(time !== undefined && { time }), values };
  }

  rolloutOf(record: Record<string, unknown>): ForeignEpisode | null {
    const reward = this.get(record, 'reward');
    if (typeof reward !== 'number' || !this.isRollout(record)) return null;
    const messages = this.messagesOf(record);
    const [success, tag, advantage] = (['success', 'tag', 'advantage'] as const).map(field => this.get(record, field));
    const first = messages.find(({ role }) => role !== 'system')?.content ?? '';
    return {
      group: String(this.get(record, 'group') ?? first),
      tag: typeof tag === 'string' && tag !== '' ? tag : 'rollout',
      messages,
      reward,
      success: typeof success === 'boolean' ? success : typeof success === 'number' ? success > 0 : null,
      advantage: typeof advantage === 'number' ? advantage : null,
      metrics: isRecord(record['metrics']) ? numbersIn(record['metrics']) : {},
    };
  }

  private messagesOf(record: Record<string, unknown>): ChatMessage[] {
    const [messages, prompt, completion] = (['messages', 'prompt', 'completion'] as const).map(field =>
      this.get(record, field),
    );
    if (messages !== undefined) return chatMessages(messages);
    if (typeof prompt === 'string' && typeof completion === 'string') return conversation(prompt, completion);
    const responses =
      typeof completion === 'string' ? [{ role: 'assistant', content: completion }] : chatMessages(completion);
    return [...chatMessages(prompt), ...responses];
  }
}

/** Returns the numbers of a record, and those of its objects, named `object/key`. */
function withInner(record: Record<string, unknown>, but: readonly string[]): Record<string, number> {
  const values = numbersIn(record, but);
  for (const [key, value] of Object.entries(record))
    if (isRecord(value))
      for (const [inner, number] of Object.entries(numbersIn(value))) values[`${key}/${inner}`] = number;
  return values;
}

/** The ranges of each source's files, so that a file is not read again when the adapter looks for further files. */
const known = new WeakMap<SourceFolder, Map<string, StepRanges>>();

function rangesIn(source: SourceFolder, name: string, fields: Fields): StepRanges {
  const ofSource = known.get(source) ?? new Map<string, StepRanges>();
  known.set(source, ofSource);
  const ranges =
    ofSource.get(name) ??
    new StepRanges(source, name, record => (fields.isRollout(record) ? fields.stepOf(record, logOf(name)) : undefined));
  ofSource.set(name, ranges);
  return ranges;
}

/**
 * The rollouts of a step in all logs form one unit. `logs` has the files of each log, the oldest first. Of a log that was
 * rotated, the newest file with the step counts, and the files before it if the log was rotated within the step: a
 * trainer that returned to a checkpoint repeats steps of older files.
 */
function unitsOf(logs: readonly StepRanges[][], fields: Fields): RolloutUnit[] {
  const steps = new Map<number, { files: StepRanges[]; keys: string[] }>();
  for (const parts of logs) {
    const own = new Map<number, { file: StepRanges; key: string }[]>();
    for (const file of parts)
      for (const { step, key } of file.steps) {
        const before = own.get(step) ?? [];
        const isContinued = before.at(-1)?.file.continuesIn(file, step) === true;
        own.set(step, [...(isContinued ? before : []), { file, key }]);
      }
    for (const [step, found] of own) {
      const unit = steps.get(step) ?? { files: [], keys: [] };
      for (const { file, key } of found) {
        unit.files.push(file);
        unit.keys.push(key);
      }
      steps.set(step, unit);
    }
  }
  return [...steps].map(([step, { files, keys }]) => ({
    ...{ mode: 'train', step, files: files.map(({ name }) => name), key: keys.join('\n') },
    async *read() {
      for (const file of files) for await (const record of file.records(step)) yield record && fields.rolloutOf(record);
    },
  }));
}
