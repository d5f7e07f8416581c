// The model of an inspection process, loaded from the most recently requested checkpoint. It runs on the CPU, so that a
// GPU stays available to the trainer. Only one model is loaded at a time, and calls run one after another. A model is
// loaded only if enough memory is available.
import { availableParallelism } from 'node:os';
import type { CheckpointChoice } from '../../protocol/inspection';
import { UserError } from '../../common/user-error';
import { startEngine } from '../../engine/remote-engine';
import type { RemoteEngine } from '../../engine/remote-engine';
import { installation } from '../../node/installation';
import { gibibytes } from '../../common/numbers';
import { memoryForRun } from '../../node/machine-memory';
import { planMemory } from '../../models/memory/memory-plan';
import { deriveSeed } from '../rollout/seeds';
import { planInput, usesCritic, usesReference, weightsLoaded } from '../plan/memory-input';
import { pictureOptions } from '../run/run-pictures';
import { readFloats } from '../store/checkpoint';
import type { InspectedRun } from './inspected-run';

export interface InspectionModel {
  engine: RemoteEngine;
  checkpoint: CheckpointChoice;
  hasReference: boolean;
  hasCritic: boolean;
}

export class ModelHolder {
  private held: { key: string; model: InspectionModel } | undefined;
  private last: Promise<unknown> = Promise.resolve();

  /**
   * @param threads number of CPU threads; 0 uses half of the cores
   * @param report receives a message before a slow operation
   */
  constructor(
    private readonly threads: number,
    private readonly report: (message: string) => void,
  ) {}

  /**
   * Runs `work` with the model of a checkpoint, after all earlier calls. Loads the checkpoint first, unless it is
   * already loaded.
   * @throws UserError if the checkpoint cannot be loaded or memory is insufficient
   */
  use<T>(
    run: InspectedRun,
    checkpoint: CheckpointChoice,
    signal: AbortSignal | undefined,
    work: (model: InspectionModel) => Promise<T>,
  ): Promise<T> {
    const done = this.last.then(async () => {
      signal?.throwIfAborted();
      const model = await this.load(run, checkpoint);
      signal?.throwIfAborted();
      return work(model);
    });
    this.last = done.catch(() => undefined);
    return done;
  }

  async close(): Promise<void> {
    await this.held?.model.engine.stop();
    this.held = undefined;
  }

  private async load(run: InspectedRun, checkpoint: CheckpointChoice): Promise<InspectionModel> {
    const key = `${run.folder.path} ${checkpoint.name}`;
    if (this.held?.key === key) return this.held.model;
    await this.close();
    this.report(`loading ${checkpoint.name}`);
    const { config, workspace } = run;
    const modelFolder = await run.modelFolder();
    const stored = await run.open(checkpoint);
    const isLocal = config.workbench.engine === 'local'; // otherwise the critic is on a server
    const [hasReference, hasCritic] = [usesReference(config), usesCritic(config) && isLocal];
    const plan = { ...(await planInput(config, modelFolder, workspace)), trains: false, rollouts: 1 };
    requireMemory(plan, config.model_path);
    const { base_quantization, rollout_quantization } = config.workbench;
    const engine = startEngine(installation.engineWorker);
    try {
      await engine.load({
        ...weightsLoaded(config, modelFolder, workspace, stored?.folder),
        referenceFolder: hasReference ? modelFolder : null,
        device: 'cpu',
        threads: this.threads > 0 ? this.threads : Math.max(1, Math.floor(availableParallelism() / 2)),
        rolloutQuantization: rollout_quantization,
        baseQuantization: base_quantization,
        checkpointed: false,
        critic: hasCritic,
        seed: deriveSeed('new-weights', config.seed.train),
        maxPositions: config.actor_rollout_ref.rollout.max_model_len,
        cacheFolder: installation.cache,
        pictures: pictureOptions(config, run.folder.path),
      });
      if (hasCritic && stored) await engine.restoreCritic(await readFloats(stored, 'critic.weights'));
      const model = { engine, checkpoint, hasReference, hasCritic };
      this.held = { key, model };
      return model;
    } catch (error) {
      await engine.stop();
      throw error;
    }
  }
}

/** Throws if the model does not fit into the available memory. */
function requireMemory(plan: Parameters<typeof planMemory>[0], model: string): void {
  const { bytes } = planMemory(plan).peak;
  const free = memoryForRun();
  if (bytes > free)
    throw new UserError(
      `inspection: ${model} needs ${gibibytes(bytes)} of memory, but only ${gibibytes(free)} is available: close other programs, pause the run, or inspect the run after its end`,
    );
}
