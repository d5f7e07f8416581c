// The teacher of on-policy distillation (workbench.distillation): a model that scores the tokens that the policy
// sampled. local-teacher.ts runs a model folder on this machine, api-teacher.ts asks a service. Token ids are exchanged,
// not texts, so both models must have the same vocabulary. A teacher's log-probs are those of temperature 1.
import type { TrainingSample } from '../../engine/training-samples';
import type { RunConfig } from '../config/schema';
import type { Journal } from '../run/journal';
import type { RunControl } from '../run/run-control';
import { usesTeacher } from '../plan/memory-input';
import { openApiTeacher } from './api-teacher';
import { openLocalTeacher } from './local-teacher';
import { apiAddress } from '../evaluation/api-service';
import { teacherSource } from './teacher-source';

export type ScoredSample = Pick<TrainingSample, 'ids' | 'mask'>;

export interface Teacher {
  /**
   * Returns the log-probs of the tokens with mask 1, in nats, and 0 for the other tokens: one array per sample.
   * `onPass` receives the progress.
   * @throws UserError if the teacher cannot score them, or RunStopped after a stop
   */
  logprobs(samples: readonly ScoredSample[], onPass: (done: number, of: number) => void): Promise<Float32Array[]>;
  close(): Promise<void>;
}

export interface TeacherOptions {
  config: RunConfig;
  /** Base folder for relative paths. */
  workspace: string;
  /** Folder of the policy's model, whose vocabulary the teacher must have. */
  modelFolder: string;
  control: Pick<RunControl, 'stopped'>;
  journal: Pick<Journal, 'event' | 'update'>;
}

/** Throws a UserError if the configured teacher does not exist, or if the key of its service is missing. */
export function checkTeacher(
  { workbench: { distillation }, model_info }: RunConfig,
  workspace: string,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  if (distillation === null) return;
  const { teacher, service } = distillation;
  if (teacher !== null) teacherSource(teacher, workspace);
  if (service !== null) apiAddress(service, model_info![service], environment);
}

/** Opens the configured teacher; returns undefined if the run has none. */
export async function openTeacher(options: TeacherOptions): Promise<Teacher | undefined> {
  const { distillation } = options.config.workbench;
  if (distillation === null || !usesTeacher(options.config)) return undefined;
  return distillation.service === null ? openLocalTeacher(options) : openApiTeacher(options);
}
