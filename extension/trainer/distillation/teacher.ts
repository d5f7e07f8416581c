// The teacher of on-policy distillation (workbench.distillation): a model that scores the tokens that the policy
// sampled. local-teacher.ts runs a model folder on this machine, api-teacher.ts asks a service, and
// tinker-teacher.ts a server of the Tinker API; open-teacher.ts chooses.
// Token ids are exchanged, not texts, so both models must have the same vocabulary. A teacher's log-probs are those of
// temperature 1.
import { UserError } from '../../common/user-error';
import type { BareSample } from '../../engine/training-samples';
import type { RunConfig } from '../config/schema';
import type { Journal } from '../run/journal';
import type { RunControl } from '../run/run-control';
import type { RunFolder } from '../store/run-folder';

export type ScoredSample = BareSample;

export interface Teacher {
  /**
   * Returns the log-probs of the tokens with mask 1, in nats, and 0 for the other tokens: one array per sample.
   * `onPass` receives the progress.
   * @throws UserError if the teacher cannot score them, or RunStopped after a stop
   */
  logprobs(samples: readonly ScoredSample[], onPass: (done: number, of: number) => void): Promise<Float32Array[]>;
  close(): Promise<void>;
}

/**
 * Requires samples without pictures, for a teacher that receives token ids alone.
 * @param key key of the configuration that names the teacher
 * @throws UserError if a sample shows pictures
 */
export function requireTextOnly(samples: readonly ScoredSample[], key: string): void {
  if (samples.some(({ shows = [] }) => shows.length > 0))
    throw new UserError(
      `config: the teacher of ${key} receives token ids alone, but the episodes show pictures: use a model on this machine as teacher (workbench.distillation.teacher)`,
    );
}

export interface TeacherOptions {
  config: RunConfig;
  /** The run's folder, whose manifest names the teacher's commit and checksum. */
  folder: Pick<RunFolder, 'id' | 'manifest' | 'path'>;
  /** Base folder for relative paths. */
  workspace: string;
  /** Folder of the policy's model, whose vocabulary the teacher must have. */
  modelFolder: string;
  control: Pick<RunControl, 'stopped'>;
  journal: Pick<Journal, 'event' | 'update'>;
}
