// Where the teacher's model is: `workbench.distillation.teacher`, written like `model_path`.
import { installation } from '../../node/installation';
import { modelSource, type ModelSource } from '../config/model-path';

const key = 'workbench.distillation.teacher';
/** Origin of the teacher's name in error messages. */
export const askedForTeacher = `config: ${key}`;

/** @throws ConfigError if there is no such model */
export const teacherSource = (teacher: string, workspace: string): ModelSource =>
  modelSource(teacher, {
    workspace,
    modelFolders: [installation.models],
    asked: askedForTeacher,
    key,
  });
