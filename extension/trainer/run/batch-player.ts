// Plays the batches of a run with its agent proxy: batches for training, validation, ReMax's baselines and analysis.
// Only a training batch that is played to its end advances training's seed counter. If too many episodes fail
// (workbench.max_failed_episodes_share; counted in rollout/agent-proxy.ts), the run pauses. When the user resumes the
// run, the batch is played again.
import type { LiveEnvironments } from '../live/live-environments';
import type { Journal } from './journal';
import type { RunControl } from './run-control';
import type { RunConfig } from '../config/schema';
import { abortable } from '../../node/abortable';
import { FailureReporter } from '../loop/environment-failure-reporter';
import { RunStopped } from '../../engine/run-stopped';
import { FailedBatch } from '../rollout/rollout-request';
import type { AgentProxyOptions, RolloutRequest } from '../rollout/rollout-request';
import type { AgentProxy } from '../rollout/agent-proxy';
import type { EnvGroups, SeedState } from '../rollout/group-layout';
import type { RolloutBatch } from '../rollout/rollout-batch';
import { deriveSeed } from '../rollout/seeds';

/** Creates an agent proxy for a configuration; `changed` replaces the configuration's seeds and groups. */
export type OpenProxy = (config: RunConfig, changed?: Pick<AgentProxyOptions, 'seed' | 'es_manager'>) => AgentProxy;

/** How a rollout is played while earlier steps train (trainer/loop/rollout-pipeline.ts). */
export interface PlayedAhead {
  /** Name of the published version of the weights that the rollout uses. */
  weights: string;
  /** Signal whose abort ends the rollout. */
  signal: AbortSignal;
  /**
   * Resolves when a step begins to wait for the rollout. Until then, the rollout shows no progress, and failed episodes
   * do not pause the run.
   */
  awaited: Promise<void>;
  isAwaited(): boolean;
}

/** Identifies a training batch. For each prompt of this batch, ReMax plays one episode with greedy decoding. */
interface Greedy {
  step: number;
  round: number;
  layout: EnvGroups;
  /** Seed of the batch's first group. */
  seed: number;
}

/** The parts of a run that the player uses. */
export interface PlayedRun {
  /** The configuration of the current step. */
  readonly config: RunConfig;
  readonly journal: Journal;
  readonly control: RunControl;
  readonly environments: LiveEnvironments;
}

/** Maximum delay of a Node.js timer in milliseconds, about 25 days. */
const longestWait = 2 ** 31 - 1;

export class BatchPlayer {
  private proxy: AgentProxy;

  constructor(
    private readonly run: PlayedRun,
    private readonly openProxy: OpenProxy,
  ) {
    this.proxy = openProxy(run.config);
  }

  /** Applies the run's changed settings from the next batch on. The seed counter stays unchanged. */
  applySettings(): void {
    const seeds = this.proxy.state;
    this.proxy = this.openProxy(this.run.config);
    this.proxy.restore(seeds);
  }

  /** Training's seed counter. */
  get seeds(): SeedState {
    return this.proxy.state;
  }

  restoreSeeds(state: SeedState): void {
    this.proxy.restore(state);
  }

  /**
   * Plays batch number `round` (from 0) of a step. A stop or an error leaves the seed counter unchanged.
   * @param groups layout of a training batch, by default the configured one
   */
  async rollout(
    mode: 'train' | 'val',
    step: number,
    round = 0,
    ahead?: PlayedAhead,
    groups?: EnvGroups,
  ): Promise<RolloutBatch> {
    const { seed, es_manager, workbench } = this.run.config;
    const further = mode === 'val' && round > 0 && workbench.compat !== 'ragen'; // RAGEN repeats the same groups
    const from = further ? { seed: seed.val + round * es_manager.val.env_groups } : {};
    return this.play(this.proxy, { mode, step, round, ...from, ...(groups && { groups }) }, ahead);
  }

  /**
   * Plays a batch for analysis only, with prompts that training does not use. Training's seed counter stays unchanged.
   */
  async rolloutAside(step: number, round: number, train: EnvGroups): Promise<RolloutBatch> {
    const { seed, es_manager } = this.run.config;
    const own = deriveSeed('rollout-aside', seed.train, step) % 2 ** 30; // seed of the first group
    const proxy = this.openProxy(this.run.config, {
      seed: { ...seed, train: own },
      es_manager: { ...es_manager, train },
    });
    return this.play(proxy, { mode: 'train', step, round, seed: own + round * train.env_groups });
  }

  /**
   * Plays ReMax's baselines: one episode (member 0) with greedy decoding for each group of a training batch. Training's
   * seed counter stays unchanged.
   */
  async rolloutGreedy({ step, round, layout, seed }: Greedy, ahead?: PlayedAhead): Promise<RolloutBatch> {
    const { actor_rollout_ref, es_manager } = this.run.config;
    const rollout = { ...actor_rollout_ref.rollout, do_sample: false };
    const config = { ...this.run.config, actor_rollout_ref: { ...actor_rollout_ref, rollout } };
    const train = { ...layout, group_size: 1 };
    const proxy = this.openProxy(config, { seed: this.run.config.seed, es_manager: { ...es_manager, train } });
    return this.play(proxy, { mode: 'train', step, round, seed }, ahead);
  }

  /**
   * Plays a batch. If too many episodes fail, the run pauses. When the user resumes the run, the batch is played again
   * with the environment code loaded at that time.
   */
  private async play(
    proxy: AgentProxy,
    request: Pick<RolloutRequest, 'mode' | 'step' | 'round' | 'seed' | 'groups'>,
    ahead?: PlayedAhead,
  ): Promise<RolloutBatch> {
    for (;;) {
      try {
        return await this.playOnce(proxy, request, ahead);
      } catch (error) {
        if (!(error instanceof FailedBatch)) throw error;
        if (ahead) await abortable(ahead.signal, ahead.awaited);
        if (!(await this.run.control.wait(`${error.message}, then resume the run`, longestWait)))
          throw new RunStopped();
        this.run.control.resumeAfterWait();
      }
    }
  }

  private async playOnce(
    proxy: AgentProxy,
    request: Pick<RolloutRequest, 'mode' | 'step' | 'round' | 'seed' | 'groups'>,
    ahead?: PlayedAhead,
  ): Promise<RolloutBatch> {
    const failures = new FailureReporter(this.run.journal);
    try {
      return await proxy.rollout({
        ...request,
        environments: this.run.environments.current,
        signal: ahead?.signal ?? this.run.control.stopped,
        ...(ahead && { weights: ahead.weights }),
        onProgress: (fraction, { episodes, of, turns }) => {
          if (ahead && !ahead.isAwaited()) return; // the progress on screen is that of the step that trains
          this.run.journal.progress(fraction, `${episodes} of ${of} episodes, ${turns} turns`);
        },
        onFailure: failed => failures.see(failed),
      });
    } finally {
      failures.end();
    }
  }

  /**
   * Plays some validation episodes of an evaluation. Reports no progress, because the evaluation itself reports its
   * progress over all batches.
   */
  async playValidation(part: Required<Pick<RolloutRequest, 'round' | 'seed' | 'only'>>): Promise<RolloutBatch> {
    return this.proxy.rollout({
      ...part,
      mode: 'val',
      step: 0,
      environments: this.run.environments.current,
      signal: this.run.control.stopped,
      onFailure: ({ tag, seed, failure: { message, kind, at } }) =>
        this.run.journal.event('environment_error', message, { tag, seed, kind, at }),
    });
  }
}
