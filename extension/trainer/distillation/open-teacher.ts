// Chooses, checks and opens the teacher that the configuration names. The check runs before the run folder is created, so
// that an unusable teacher leaves no run.
import { installation } from '../../node/installation';
import { modelSource } from '../config/model-path';
import type { RunConfig } from '../config/schema';
import { apiAddress } from '../evaluation/api-service';
import { usesTeacher } from '../plan/memory-input';
import { openApiTeacher } from './api-teacher';
import { openLocalTeacher, requireUsableTeacher } from './local-teacher';
import type { Teacher, TeacherOptions } from './teacher';
import { teacherSource } from './teacher-source';

/**
 * Throws a UserError if the configured teacher does not exist or is unusable for the policy's model, or if the key of its
 * service is missing. Models of the hub are checked later, when the run has downloaded them.
 */
export function checkTeacher(
  config: RunConfig,
  workspace: string,
  environment: Readonly<Record<string, string | undefined>>,
): void {
  const { model_path, model_info, workbench } = config;
  if (workbench.distillation === null || !usesTeacher(config)) return;
  const { teacher, service } = workbench.distillation;
  if (teacher !== null) {
    const policy = modelSource(model_path, { workspace, modelFolders: [installation.models] });
    const source = teacherSource(teacher, workspace);
    if ('folder' in policy && 'folder' in source) requireUsableTeacher(config, policy.folder, source.folder);
  }
  if (service !== null) apiAddress(service, model_info![service], environment);
}

/** Opens the configured teacher; returns undefined if the run has none. */
export async function openTeacher(options: TeacherOptions): Promise<Teacher | undefined> {
  const { distillation } = options.config.workbench;
  if (distillation === null || !usesTeacher(options.config)) return undefined;
  if (distillation.server !== null) {
    const { openTinkerTeacher } = await import('./tinker-teacher'); // loads an HTTP client
    return openTinkerTeacher(options);
  }
  return distillation.service === null ? openLocalTeacher(options) : openApiTeacher(options);
}
