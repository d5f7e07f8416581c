// A teacher on this machine: a model folder, a bundled model or a model of the Hugging Face hub, in a second engine. Its
// weights are frozen and stay in their files.
import { abortable } from '../../node/abortable';
import { UserError } from '../../common/user-error';
import { untrained } from '../../engine/load-options';
import { pictureOptions } from '../run/run-pictures';
import { startEngine } from '../../engine/remote-engine';
import { requireSameModel } from '../../models/weights/model-checksum';
import { readDecoderConfig } from '../../models/weights/model-folder';
import { installation } from '../../node/installation';
import type { RunConfig } from '../config/schema';
import { passBudget } from '../run/pass-budget';
import { fetchedHubModel } from '../run/run-model';
import { requireSameVocabulary } from './same-vocabulary';
import { teacherSource } from './teacher-source';
import type { Teacher, TeacherOptions } from './teacher';

/**
 * Loads the teacher. A hub model is downloaded if it is missing.
 * @throws UserError if the model cannot be used, or if its weights differ from those at the start of the run
 */
export async function openLocalTeacher(options: TeacherOptions): Promise<Teacher> {
  const { config, modelFolder, control, journal } = options;
  const { rollout } = config.actor_rollout_ref;
  const folder = await teacherFolder(options);
  requireUsableTeacher(config, modelFolder, folder);
  const { id, manifest } = options.folder;
  if (manifest.teacher)
    await abortable(control.stopped, requireSameModel({ id, manifest: { model: manifest.teacher } }, folder));
  const engine = startEngine(installation.engineWorker);
  const interrupt = (): void => engine.interrupt();
  control.stopped.addEventListener('abort', interrupt, { once: true });
  const close = async (): Promise<void> => {
    control.stopped.removeEventListener('abort', interrupt);
    await engine.stop();
  };
  try {
    const loading = engine.load({
      ...untrained,
      modelFolder: folder,
      adapterFolder: null,
      frozen: true,
      device: config.workbench.device,
      threads: config.workbench.threads,
      maxPositions: rollout.max_model_len,
      cacheFolder: installation.cache,
      generates: false,
      pictures: pictureOptions(config, options.folder.path),
    });
    const { parameters } = await abortable(control.stopped, loading);
    journal.event('setting', `the teacher is ${folder} (${(parameters / 1e6).toPrecision(3)} M parameters)`);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    logprobs: async (samples, onPass) => {
      engine.onUnits = onPass;
      const episodes = config.actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu;
      const own = samples.map(({ ids, mask, shows }) => ({ ids, mask, shows })); // only these fields are copied to the worker
      const { logprobs } = await engine.score('actor', own, passBudget(config, episodes, samples.length), 1);
      return logprobs;
    },
    close,
  };
}

/**
 * Throws a UserError if a model cannot score the policy's episodes: if it has another vocabulary or fewer positions than
 * `max_model_len`.
 */
export function requireUsableTeacher(
  { actor_rollout_ref: { rollout } }: Pick<RunConfig, 'actor_rollout_ref'>,
  policyFolder: string,
  teacherFolder: string,
): void {
  requireSameVocabulary(policyFolder, teacherFolder);
  const { maxPositions } = readDecoderConfig(teacherFolder);
  if (maxPositions < rollout.max_model_len)
    throw new UserError(
      `config: workbench.distillation.teacher is ${teacherFolder}, which has ${maxPositions} positions, fewer than max_model_len ${rollout.max_model_len}: lower max_model_len to at most ${maxPositions}`,
    );
}

/** Returns the teacher's folder. A hub model is read at the commit in the manifest, as by earlier parts of the run. */
async function teacherFolder({ config, folder, workspace, control, journal }: TeacherOptions): Promise<string> {
  const teacher = config.workbench.distillation!.teacher!;
  const source = teacherSource(teacher, workspace);
  if ('folder' in source) return source.folder;
  const revision = folder.manifest.teacher?.revision ?? source.hub.revision;
  return fetchedHubModel({ ...source.hub, revision }, teacher, control, journal);
}
