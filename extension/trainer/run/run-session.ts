// The work of a trainer between its lease and the run's end: training or, with val_only, an evaluation, either with the
// engine or with a model behind an API and no engine.
import { storedConfig } from './stored-config';
import type { RunConfig } from '../config/schema';
import { logNotice, openEnvironments } from './run-environments';
import { train } from '../loop/train';
import { ApiPlayer } from '../evaluation/api-player';
import { configuredModel } from '../evaluation/api-service';
import { evaluate } from '../evaluation/evaluate';
import { LocalPlayer } from '../evaluation/local-player';
import { keepEnvironment } from '../store/environment-store';
import type { OpenOptions } from './open-run';
import { openRun } from './open-run';

/** The opened work of a trainer. */
export interface RunSession {
  /** Details for the log. */
  about: Record<string, unknown>;
  /** Finished steps. */
  step(): number;
  /** Works until the end. @throws RunStopped, or the error that ended the run */
  work(): Promise<'finished' | 'stopped'>;
  close(): Promise<void>;
}

/** Opens the kind of work that the run's manifest asks for. */
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
    work: async () => {
      options.control.serveSettings(run.settings);
      const { settings = {} } = options;
      if (Object.keys(settings).length > 0) await run.changeSettings(state, settings);
      const end = await train(run, state);
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
    work: async () => {
      await evaluate({ ...options, config: run.config }, new LocalPlayer(run));
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
  const player = new ApiPlayer({ config, model, service, environments, loaded, control, journal });
  return {
    about: { model: model.model_name, url: service.url },
    step: () => 0,
    work: async () => {
      await evaluate({ ...options, config }, player);
      return 'finished';
    },
    close: () => environments.stop(),
  };
}
