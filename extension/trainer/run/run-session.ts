// The work of a trainer after it has acquired the lease and until the run ends. This work is training or, with
// val_only, an evaluation of a local model or of a model behind an API.
import { storedConfig } from './stored-config';
import type { RunConfig } from '../config/schema';
import { logNotice, openEnvironments } from './run-environments';
import { train } from '../loop/train';
import { ApiPlayer } from '../evaluation/api-player';
import { requireRoleSettings } from '../rewards/role-checks';
import { openJudges } from './run-judges';
import { openRolePlayers } from './run-role-players';
import { configuredModel } from '../evaluation/api-service';
import { evaluate } from '../evaluation/evaluate';
import { LocalPlayer } from '../evaluation/local-player';
import { PictureStore } from '../../node/picture-store';
import { keepEnvironment } from '../store/environment-store';
import type { OpenOptions } from './open-run';
import { openRun } from './open-run';
import { LivePlugins } from '../plugins/live-plugins';
import { memoryOf } from '../plugins/plugin-memory';

/** An opened training or evaluation. */
export interface RunSession {
  /** Details for trainer.log. */
  about: Record<string, unknown>;
  /** Number of finished steps. */
  step(): number;
  /** Changes settings (given by key) from the next step on; only for training. */
  changeSettings(values: Readonly<Record<string, number>>): Promise<void>;
  /** Runs the work to its end. @throws RunStopped, or the error that ended the run */
  work(): Promise<'finished' | 'stopped'>;
  close(): Promise<void>;
}

/** Opens training or an evaluation, depending on the run's configuration. */
export async function openSession(options: OpenOptions): Promise<RunSession> {
  const config = storedConfig(options.folder);
  if (!config.trainer.val_only) return openTraining(options);
  return config.model_config === null ? openEvaluation(options) : openApiEvaluation(config, options);
}

async function openTraining(options: OpenOptions): Promise<RunSession> {
  const { run, state } = await openRun(options);
  return {
    about: { model: run.model },
    step: () => state.step,
    changeSettings: async values => {
      options.control.serveSettings(run.settings);
      if (Object.keys(values).length > 0) await run.changeSettings(state, values);
    },
    work: async () => {
      const end = await train(run, state);
      await run.timeline.secure(state.step);
      await run.checkpoints.writeLast(state);
      return end;
    },
    close: () => run.close(),
  };
}

async function openEvaluation(options: OpenOptions): Promise<RunSession> {
  const { run } = await openRun(options);
  return {
    about: { model: run.model },
    step: () => 0,
    changeSettings: async () => undefined, // `refuseSettings` has refused them
    work: async () => {
      await evaluate({ ...options, config: run.config }, new LocalPlayer(run));
      run.timeline.endStep(0);
      return 'finished';
    },
    close: () => run.close(),
  };
}

async function openApiEvaluation(config: RunConfig, options: OpenOptions): Promise<RunSession> {
  const { folder, workspace, control, journal } = options;
  const { model, service } = configuredModel(config, process.env);
  const { tags } = config.es_manager.val.env_configs;
  const { environments, loaded } = await openEnvironments(config, tags, workspace, logNotice, control.stopped);
  for (const environment of loaded) await journal.retryUntilWritable(() => keepEnvironment(folder, environment));
  requireRoleSettings(loaded, config);
  const judges = openJudges({ config, tags, workspace, folder, journal });
  const players = openRolePlayers({ config, tags, folder, journal });
  const plugins = await LivePlugins.open(config, { workspace, folder, journal });
  const remember = memoryOf(plugins.set);
  const pictures = new PictureStore(folder.path);
  const parts = { config, model, service, environments, loaded, control, journal, judges, players, remember, pictures };
  const player = new ApiPlayer(parts);
  return {
    about: { model: model.model_name, url: service.url },
    step: () => 0,
    changeSettings: async () => undefined, // `refuseSettings` has refused them
    work: async () => {
      await evaluate({ ...options, config }, player);
      return 'finished';
    },
    close: async () => {
      judges?.close();
      players?.close();
      await plugins.stop();
      await environments.stop();
    },
  };
}
