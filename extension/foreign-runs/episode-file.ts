// Writes the rollouts of one step and mode as a file of episodes, with their index line and diagnosis. Prompt groups and
// members are numbered in the order of the rollouts. The file is complete when `writeEpisodes` returns; the caller
// removes it after an error. Rollouts beyond the limits are counted.
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { storeError } from '../node/files';
import { addToIndex, indexLine, type EpisodeIndexLine } from '../run-data/episode-index-line';
import { mostLineBytes } from '../run-data/run-file-names';
import type { ForeignEpisode, RolloutUnit } from './adapter';
import type { AttachedPictures } from './attached-pictures';
import { episodeRecord } from './episode-record';
import { RolloutDiagnosis, type StepDiagnosis } from './rollout-diagnosis';
import { ValidationSummary, type SummarisedValidation } from './validation-summary';

/** Maximum bytes of an episode's line: its index line and readers have the same limit. */
const mostEpisodeBytes = mostLineBytes / 2;
/** Milliseconds of work between two yields to the event loop, so that the work can be aborted. */
const yieldMs = 50;

export interface WrittenEpisodes {
  index: EpisodeIndexLine;
  bytes: number;
  /** Number of lines and rows that were no rollouts. */
  skipped: number;
  /** Number of rollouts beyond the limits of a step. */
  leftOut: number;
  /** Whether the unit was read to its end. */
  isComplete: boolean;
  /** Diagnosis of the written training rollouts. */
  diagnosis: StepDiagnosis;
  /** Summary of the written validation rollouts. */
  validation: SummarisedValidation;
}

interface WriteOptions {
  /** Bytes after which no further rollout is read. */
  most: number;
  /** Numbers of bytes and rollouts after which no further rollout is written; the others are counted. */
  limits: { bytes: number; rollouts: number };
  pictures: AttachedPictures;
  signal: AbortSignal;
}

/** Returns the key of a rollout's prompt group; its pictures are named by their contents. */
function groupKey({ group, isGroupedByText, messages }: ForeignEpisode): string {
  if (!isGroupedByText) return group;
  const response = messages.findIndex(({ role, sampled = role === 'assistant' }) => sampled);
  const first = messages.slice(0, response < 0 ? messages.length : response);
  return [group, ...first.flatMap(({ pictures = [] }) => pictures)].join('\n');
}

/** Writes the rollouts of a unit to `file`. Throws the reason of `signal` if it is aborted meanwhile. */
export async function writeEpisodes(
  unit: RolloutUnit,
  file: string,
  { most, limits, pictures, signal }: WriteOptions,
): Promise<WrittenEpisodes> {
  const { mode, step } = unit;
  const groups = new Map<string, { id: number; members: number }>();
  const index = indexLine(mode, step, 0);
  const diagnosis = new RolloutDiagnosis();
  const validation = new ValidationSummary();
  let [count, bytes, skipped, leftOut] = [0, 0, 0, 0];
  let yielded = performance.now();
  let isComplete = true;
  const output = createWriteStream(file);
  const failed = once(output, 'error').then(([error]) => Promise.reject(storeError('write', file, error)));
  failed.catch(() => undefined);
  const write = async (text: string): Promise<void> => {
    if (!output.write(text)) await Promise.race([once(output, 'drain'), failed]);
  };
  try {
    for await (const rollout of unit.read()) {
      if (performance.now() - yielded > yieldMs) {
        await yieldToEventLoop();
        yielded = performance.now();
      }
      signal.throwIfAborted();
      if (bytes >= most) {
        isComplete = false;
        break;
      }
      if (!rollout || !Number.isFinite(rollout.reward)) {
        skipped++;
        continue;
      }
      if (count >= limits.rollouts || bytes >= limits.bytes) {
        leftOut++;
        continue;
      }
      const copied = await pictures.withCopies(rollout);
      const key = groupKey(copied);
      const group = groups.get(key) ?? { id: groups.size, members: 0 };
      groups.set(key, group);
      const place = { mode, step, group_id: group.id, member: group.members, env_id: count };
      const episode = episodeRecord(copied, place);
      const text = `${JSON.stringify(episode)}\n`;
      const length = Buffer.byteLength(text);
      if (length > mostEpisodeBytes) {
        skipped++;
        continue;
      }
      group.members++;
      bytes += length;
      await write(text);
      addToIndex(index, episode, bytes);
      if (mode === 'train') diagnosis.add(episode, rollout.hasTexts ?? true);
      else validation.add(episode);
      count++;
    }
  } finally {
    output.end();
    await Promise.race([once(output, 'close'), failed.catch(() => undefined)]);
  }
  return { index, bytes, skipped, leftOut, isComplete, diagnosis: diagnosis.result(), validation: validation.result() };
}
