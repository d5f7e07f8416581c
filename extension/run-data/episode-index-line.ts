// `episodes/index.jsonl`: index of a run's episodes with about 70 bytes per episode, so that 100,000 episodes can be
// listed without reading a gigabyte of episode files. A line contains the columns of the episodes that were appended to
// one file in one write. Derived data: the episode files are authoritative, and the index lines of an episode file are
// used only if they cover this file completely. The trainer writes the index; for runs of older trainers the editor
// computes the same lines and stores them in its own storage.
import { actionOutcomes } from './action-outcomes';
import { recordOf } from '../common/records';
import { addRoles, isRoleLine, type RoleLine } from './role-columns';
import { mostLineBytes } from './run-file-names';
import { hasTokens, type Episode } from './episode';

/** Numbers stored for each episode. Flags are 0 and 1. */
export const indexColumns = [
  'group',
  'member',
  'tag', // index into `tags`
  'seed',
  'success', // null if unknown
  'score',
  'reward',
  'advantage', // null if the episode was not trained on
  'turns',
  'tokens', // number of sampled tokens; null if the tokens are not stored
  'invalid', // actions unknown to the environment, plus answers without an action
  'kept', // whether all filters kept the episode (episode.ts); null for validation
  'first', // hash of the first turn's state; 0 for an episode without turns
  'at', // byte offset of the episode's line in the file
  'bytes', // length of the line in bytes, without the newline
  'texts', // number of leading bytes of the line that contain states, answers, final state and error
] as const;
export type IndexColumn = (typeof indexColumns)[number];

export interface EpisodeIndexLine {
  mode: 'train' | 'val';
  step: number;
  /** Byte range [from, to) of the file that the line covers. */
  from: number;
  to: number;
  tags: string[];
  columns: Record<IndexColumn, (number | null)[]>;
  /** Scores and returns by role; absent if no episode has roles. */
  roles?: RoleLine;
}

/** Returns an empty index line for the part of a file from byte `from` on. */
export function indexLine(mode: 'train' | 'val', step: number, from: number): EpisodeIndexLine {
  const columns = recordOf(indexColumns, (): (number | null)[] => []);
  return { mode, step, from, to: from, tags: [], columns };
}

/**
 * Adds an episode whose line, including the newline, ends at byte `to`. `texts` is the number of bytes of that line
 * before the episode's messages and tokens. The default of `texts` is correct only if the line's keys are in the
 * trainer's order.
 */
export function addToIndex(line: EpisodeIndexLine, episode: Episode, to: number, texts = textBytes(episode)): void {
  if (!line.tags.includes(episode.tag)) line.tags.push(episode.tag);
  let tokens = 0;
  for (const bit of episode.tokens.mask) tokens += bit;
  const values: Record<IndexColumn, number | null> = {
    group: episode.group_id,
    member: episode.member,
    tag: line.tags.indexOf(episode.tag),
    seed: episode.seed,
    success: episode.success === null ? null : Number(episode.success),
    score: episode.score,
    reward: episode.reward,
    advantage: episode.advantage === null ? null : Number(episode.advantage.toPrecision(6)),
    turns: episode.turns.length,
    tokens: hasTokens(episode) ? tokens : null,
    invalid: invalidActions(episode),
    kept: episode.kept === null ? null : Number(episode.kept),
    first: episode.turns.length > 0 ? textHash(episode.turns[0].state) : 0,
    at: line.to,
    bytes: to - line.to - 1,
    texts,
  };
  if (episode.roles) line.roles = addRoles(line.roles, line.columns.at.length, episode.roles);
  for (const name of indexColumns) line.columns[name].push(values[name]);
  line.to = to;
}

/** Whether a parsed line is a valid index line. */
export function isIndexLine(value: unknown): value is EpisodeIndexLine {
  const line = value as EpisodeIndexLine;
  if (typeof line !== 'object' || line === null || typeof line.columns !== 'object' || line.columns === null)
    return false;
  const { mode, step, from, to, tags, columns, roles } = line;
  const rows = columns.at?.length;
  return (
    (mode === 'train' || mode === 'val') &&
    [step, from, to].every(isCount) &&
    Array.isArray(tags) &&
    tags.every(tag => typeof tag === 'string') &&
    (roles === undefined || isRoleLine(roles, rows)) &&
    indexColumns.every(name => {
      const column: unknown = columns[name];
      return Array.isArray(column) && column.length === rows && column.every(isNumberOrNull);
    }) &&
    // Readers allocate `bytes` bytes for an episode without a further check, so every episode must lie within the byte
    // range that this index line covers.
    columns.at.every((at, i) => {
      const [bytes, texts] = [columns.bytes[i], columns.texts[i]];
      return (
        isCount(at) &&
        isCount(bytes) &&
        isCount(texts) &&
        from <= at &&
        at + bytes <= to &&
        texts <= bytes &&
        bytes <= mostLineBytes
      );
    })
  );
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumberOrNull = (value: unknown): boolean => value === null || typeof value === 'number';

/** Returns the trainer's episode id, such as `train-000012-g003-m05`. */
export function episodeId({
  mode,
  step,
  group_id,
  member,
}: Pick<Episode, 'mode' | 'step' | 'group_id' | 'member'>): string {
  const padded = (value: number, digits: number) => String(value).padStart(digits, '0');
  return `${mode}-${padded(step, 6)}-g${padded(group_id, 3)}-m${padded(member, 2)}`;
}

/** Counts an episode's actions that the environment does not know, plus its answers without any action. */
export function invalidActions({ turns, terminated }: Pick<Episode, 'turns' | 'terminated'>): number {
  return turns.reduce((count, turn, i) => {
    const outcomes = actionOutcomes(turn, terminated && i === turns.length - 1);
    const unknown = outcomes.filter(({ reason }) => reason === 'not an action of this environment').length;
    return count + (outcomes.length === 0 ? 1 : unknown);
  }, 0);
}

/**
 * Returns the number of bytes in an episode's line before the messages and tokens. A text search reads only these
 * bytes, because the messages repeat the same texts.
 */
function textBytes(episode: Episode): number {
  const { messages: _messages, tokens: _tokens, what_if: _whatIf, ...texts } = episode;
  return new TextEncoder().encode(JSON.stringify(texts)).length - 1;
}

/** Returns a 53-bit hash of a text (cyrb53). */
export function textHash(text: string): number {
  let [a, b] = [0xdeadbeef, 0x41c6ce57];
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    a = Math.imul(a ^ unit, 2654435761);
    b = Math.imul(b ^ unit, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return 4294967296 * (2097151 & b) + (a >>> 0);
}
