// The checkpoints of a training. A checkpoint contains the weights, the optimizer moments, the counters and the lengths
// of the logs at the end of a step. A run that is resumed from a checkpoint gives the same numbers as an uninterrupted
// run. loop/checkpoint-due.ts decides when a checkpoint is due; store/checkpoint-writer.ts writes the files and removes
// old checkpoints (workbench.keep_checkpoints).
import { join } from 'node:path';
import type { BatchPlayer, PlayedRun } from './batch-player';
import type { LivePlugins } from '../plugins/live-plugins';
import type { StepRollouts } from '../loop/rollout-pipeline';
import type { RunFolder } from '../store/run-folder';
import type { LoadedModel } from '../../engine/load-options';
import type { RemoteEngine } from '../../engine/remote-engine';
import { settingsOf } from './stored-config';
import type { EngineState } from '../../engine/engine';
import { modelFiles } from '../../models/weights/model-files';
import { adapterWeightsName } from '../../models/adapters/peft-adapter';
import { optimizerStateFiles, readMoments } from '../store/optimizer-state';
import { listFolder, readBlob, readFloats, readManifest, stepFolder } from '../store/checkpoint';
import { fileSystem } from '../../node/files';
import { runFiles } from '../../run-data/run-file-names';
import { writeCheckpoint } from '../store/checkpoint-writer';
import type { StoredCheckpoint } from '../store/checkpoint';
import type { RunSeal } from '../store/manifest-seal';
import type { TrainerState, SavedState } from './trainer-state';
import { firstState } from './trainer-state';

/** The parts of a run that are saved and restored. */
export interface SavedRun extends PlayedRun {
  readonly folder: RunFolder;
  readonly engine: RemoteEngine;
  readonly plugins: Pick<LivePlugins, 'versions' | 'compareWith'>;
  readonly model: LoadedModel;
  readonly batches: BatchPlayer;
  readonly rollouts: Pick<StepRollouts, 'seeds'>;
  readonly usesCritic: boolean;
  /** True if a stop interrupted optimizer steps that cannot be undone. */
  readonly halfway: boolean;
  /** Success rate of the newest validation, 0…1; null before the first validation. */
  validated: number | null;
}

export class TrainingCheckpoints {
  /** Step of the newest complete checkpoint; 0 if there is none, or if it is outdated. */
  private saved = 0;
  private readonly seal: RunSeal;

  constructor(
    private readonly run: SavedRun,
    private readonly modelFolder: string,
  ) {
    const { id, manifest } = run.folder.verifySeal();
    this.seal = { id, manifest };
  }

  /**
   * Marks the newest checkpoint as outdated, because settings have changed since it was written; `writeLast` then
   * writes a new checkpoint.
   */
  outdate(): void {
    this.saved = 0;
  }

  /**
   * Writes a checkpoint: `state`, weights, optimizer moments, and lengths of the logs. Returns the checkpoint's folder.
   */
  async write(state: TrainerState): Promise<string> {
    const { folder, journal, config } = this.run;
    const phase = journal.status.phase;
    journal.update({ phase: 'checkpoint' });
    const engine = await this.run.engine.state();
    const files = await modelFiles(this.run.engine, this.run.model, this.modelFolder, config.model_path);
    await journal.sync();
    const about = {
      step: state.step,
      offsets: journal.offsets,
      streams: {},
      seed_counter: this.run.rollouts.seeds.seed_counter,
      run: this.seal,
      log_chain: journal.logChain,
      state: {
        settings: settingsOf(this.run.config),
        watch: state.watch,
        kl_coef: state.klCoefficient,
        collapse: state.collapse,
        alarms: state.alarms,
        curriculum: state.curriculum,
        skipped: state.skipped,
        spent: state.spent,
        environments: this.run.environments.versions,
        plugins: this.run.plugins.versions,
        ...updatesOf(engine),
        wall_s: journal.wallSeconds,
        success: journal.status.success,
        validated: this.run.validated,
        ...(state.unvalidated && { unvalidated: state.unvalidated }),
      },
    };
    const blobs = {
      ...files,
      ...stateFiles(engine),
    };
    const before = await this.statesOnServer();
    const path = await journal.retryUntilWritable(() =>
      writeCheckpoint(folder.path, about, blobs, config.workbench.keep_checkpoints),
    );
    await this.discard(before);
    const name = journal.relative(path);
    journal.event('checkpoint', `checkpoint ${name}`, { folder: name });
    journal.update({ phase });
    this.run.control.checkpointed(name);
    this.saved = state.unvalidated ? 0 : state.step;
    return path;
  }

  /**
   * Deletes from a server the states with the given addresses, except those to which a checkpoint in the run folder
   * still refers.
   */
  private async discard(states: readonly string[] | null): Promise<void> {
    const kept = await this.statesOnServer();
    if (states && kept) await this.run.engine.discard?.(states.filter(address => !kept.includes(address)));
  }

  /**
   * Returns the addresses of the states on a server to which the checkpoints of the run folder refer. Returns null if a
   * checkpoint cannot be read, because the states to which it refers are then unknown.
   */
  private async statesOnServer(): Promise<string[] | null> {
    if (!this.run.engine.discard) return [];
    const parent = join(this.run.folder.path, runFiles.checkpoints);
    try {
      const names = (await listFolder(parent, fileSystem)).filter(name => stepFolder.test(name));
      const manifests = await Promise.all(names.map(name => readManifest(join(parent, name), fileSystem)));
      return manifests.flatMap(({ state }) => {
        const { server } = state as Partial<SavedState>;
        return server ? [server.path, ...(server.critic ? [server.critic.path] : [])] : [];
      });
    } catch {
      return null;
    }
  }

  /**
   * Writes the checkpoint at the end of a run. Writes none if no step is finished, if the newest checkpoint already
   * contains the state, or if the weights are not those of a finished step.
   */
  async writeLast(state: TrainerState): Promise<void> {
    if (this.run.halfway) {
      const where = this.run.model.provider === 'tinker' ? 'on a server' : 'for a model of this size';
      const sentence = `the run was stopped within the update of step ${state.step + 1}, which cannot be undone ${where}, so ragen resume continues from the newest checkpoint`;
      return this.run.journal.event('warning', sentence, { step: state.step + 1 });
    }
    if (state.step > 0 && (state.step !== this.saved || this.run.control.checkpointRequested)) await this.write(state);
  }

  /** Restores the engine and the run from a checkpoint; returns the trainer's state. */
  async restore(checkpoint: StoredCheckpoint): Promise<TrainerState> {
    const { step, seed_counter } = checkpoint.manifest;
    // eslint-disable-next-line no-restricted-syntax -- stored by `write` above; its schema is any JSON
    const saved = checkpoint.manifest.state as unknown as SavedState;
    const { unvalidated } = saved;
    const first = firstState(this.run.config); // for keys that a checkpoint of an earlier version lacks
    const { watch = first.watch, collapse = first.collapse, alarms = first.alarms, skipped = first.skipped } = saved;
    const { kl_coef: klCoefficient = first.klCoefficient, spent = first.spent, curriculum = first.curriculum } = saved;
    this.run.validated = saved.validated;
    const state = await engineState(checkpoint, saved, this.run.usesCritic);
    // Verify the checksum of the weights here, because the engine loaded the file without verifying it.
    await readBlob(checkpoint, this.run.model.lora ? adapterWeightsName : 'model.safetensors');
    await this.run.engine.restore(state);
    this.run.batches.restoreSeeds({ seed_counter });
    this.run.environments.compareWith(saved.environments ?? {});
    this.run.plugins.compareWith(saved.plugins ?? {});
    this.saved = unvalidated ? 0 : step;
    const counters = { watch, klCoefficient, collapse, alarms, curriculum, skipped, spent };
    return { step, ...counters, ...(unvalidated && { unvalidated }) };
  }
}

/** Returns the part of an engine's state that is stored in the checkpoint's manifest. */
const updatesOf = (engine: EngineState): Pick<SavedState, 'actor_updates' | 'critic_updates' | 'server'> =>
  'server' in engine
    ? {
        actor_updates: engine.server.updates,
        critic_updates: engine.server.critic?.updates ?? 0,
        server: engine.server,
      }
    : { actor_updates: engine.actor.step, critic_updates: engine.critic?.step ?? 0 };

/** Returns the checkpoint files of an engine's state, except the actor's weights. */
function stateFiles(engine: EngineState): Record<string, Uint8Array | Float32Array> {
  if ('server' in engine) return {};
  const { actor, critic } = engine;
  return {
    ...optimizerStateFiles('actor', actor),
    ...(critic && { 'critic.weights': critic.weights, ...optimizerStateFiles('critic', critic) }),
  };
}

/** Reads an engine's state from a checkpoint. */
async function engineState(
  checkpoint: StoredCheckpoint,
  { actor_updates, critic_updates, server }: SavedState,
  usesCritic: boolean,
): Promise<EngineState> {
  if (server) return { server };
  const actor = await readMoments(checkpoint, 'actor', actor_updates);
  if (!usesCritic) return { actor };
  const moments = await readMoments(checkpoint, 'critic', critic_updates);
  return { actor, critic: { ...moments, weights: await readFloats(checkpoint, 'critic.weights') } };
}
