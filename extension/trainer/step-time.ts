// How long a step of a run will take, before it runs. The course of a step is what it costs a token: a fixed part and one for each
// parameter. Where a run of this workspace was made by the same processor on the same device, what it measured takes the place of
// these constants, so that the same model and environments come out as they were and others are scaled. Without one, a GPU is not guessed at.
import { median } from '../protocol/estimate';
import type { Manifest, MetricsLine } from '../protocol/run-folder';
import type { RunConfig } from './config/schema';
import { usesCritic, usesReference } from './run-plan';

/**
 * Seconds a token, measured with two threads of an AMD EPYC 7R13: at 0.4 M (quickstart: 35 µs a trained token, 200 µs a sampled one with
 * its environments), 5.5 M and, by adapters, 494 M parameters (docs/PERFORMANCE.md: 265 µs and 9.1 ms a trained token).
 */
const cost = {
  sampled: { fixed: 160e-6, parameter: 23e-12 },
  trained: { fixed: 25e-6, parameter: 35e-12 },
  trainedAdapters: { fixed: 25e-6, parameter: 18e-12 },
};
/** A forward pass alone beside one with gradients. */
const forwardShare = 1 / 3;
/**
 * Of the tokens that an episode may sample in all its turns, those it does where nothing was measured. Episodes end before their last turn
 * and answers before their limit: of 320 tokens quickstart samples 38. Models that think at length come nearer to the limit.
 */
const usedShare = 0.2;
/** Tokens of the first prompt where nothing was measured. */
const assumedPrompt = 200;
/** Steps at the end of a run that its medians are over. */
const recent = 20;

/** What a step works through; tokens of one episode. */
export interface Workload {
  parameters: number;
  adapters: boolean;
  device: string;
  tags: string;
  episodes: number;
  /** Sampled tokens an episode. */
  sampled: number;
  /** All tokens an episode. */
  tokens: number;
  /** Of the episodes, those trained on, 0…1. */
  kept: number;
  /** Passes over the kept tokens, in units of one with gradients. */
  passes: number;
}

/** A run that was measured: its workload, and the medians of its last steps in seconds. */
export interface MeasuredRun {
  id: string;
  name: string;
  model: string;
  work: Workload;
  generation: number;
  /** The rest of the step, without validation. */
  rest: number;
}

/** Seconds of a step without validation, and where they come from. */
export interface StepTime {
  generation_s: number;
  training_s: number;
  step_s: number;
  /** All steps together. */
  total_s: number;
  tokens: { sampled: number; trained: number };
  /** `measured`: the same model on the same environments; `scaled`: from another run; `assumed`: from constants of another machine. */
  basis: 'measured' | 'scaled' | 'assumed';
  /** The run that was gone by. */
  run: { id: string; name: string } | null;
}

/** What a configuration lets a step work through, with lengths as they are allowed rather than measured. */
export function workloadOf(config: RunConfig, parameters: number): Workload {
  const { actor, model, rollout } = config.actor_rollout_ref;
  const { env_groups, group_size, env_configs } = config.es_manager.train;
  const sampled = Math.min(
    rollout.max_model_len,
    config.agent_proxy.max_turn * Math.min(rollout.response_length, rollout.max_model_len) * usedShare,
  );
  const forwards = Number(usesReference(config)) + Number(!config.algorithm.rollout_correction.bypass_mode);
  const critic = Number(usesCritic(config));
  return {
    parameters,
    adapters: model.lora_rank > 0 || model.lora_adapter_path !== null,
    device: config.workbench.device,
    tags: [...env_configs.tags].sort().join(),
    episodes: env_groups * group_size,
    sampled,
    tokens: Math.min(rollout.max_model_len, assumedPrompt + 2 * sampled),
    kept: 1,
    passes: actor.ppo_epochs + critic * (config.critic.ppo_epochs + forwardShare) + forwards * forwardShare, // the critic is as large
  };
}

/**
 * What a run measured, of its newest lines of metrics; null where it trained nothing yet.
 * @param lines in order of steps
 */
export function measuredRun(manifest: Manifest, config: RunConfig, lines: readonly MetricsLine[]): MeasuredRun | null {
  const steps = lines.filter(line => typeof line['timing_s/gen'] === 'number').slice(-recent);
  const medianOf = (value: (line: MetricsLine) => number): number => median(steps.map(value).filter(Number.isFinite));
  const number = (key: string) => (line: MetricsLine) => Number(line[key] ?? Number.NaN);
  const allowed = workloadOf(config, manifest.model.parameters);
  const generation = medianOf(number('timing_s/gen'));
  const played = medianOf(number('perf/total_num_tokens'));
  const sampled = medianOf(line => number('perf/rollout_tokens_per_s')(line) * number('timing_s/gen')(line));
  const trained = medianOf(line => number('perf/train_tokens_per_s')(line) * number('timing_s/update_actor')(line));
  const testing = (line: MetricsLine): number => Number(line['timing_s/testing'] ?? 0);
  const step = medianOf(line => number('timing_s/step')(line) - testing(line));
  if (![generation, played, sampled, trained, step].every(x => Number.isFinite(x) && x > 0)) return null;
  return {
    id: manifest.id,
    name: manifest.name,
    model: manifest.model.path,
    work: {
      ...allowed,
      sampled: sampled / allowed.episodes,
      tokens: played / allowed.episodes,
      kept: Math.min(1, trained / played),
    },
    generation,
    rest: Math.max(0, step - generation),
  };
}

/**
 * The time of a step of `work`.
 * @param runs those measured by this processor, newest first
 * @returns null for a GPU that no run was measured on
 */
export function stepTime(work: Workload, model: string, steps: number, runs: readonly MeasuredRun[]): StepTime | null {
  const onDevice = runs.filter(run => run.work.device === work.device);
  const sameModel = (run: MeasuredRun) => run.model === model && run.work.adapters === work.adapters;
  const run =
    onDevice.find(each => sameModel(each) && each.work.tags === work.tags) ?? onDevice.find(sameModel) ?? onDevice[0];
  if (!run && ['cuda', 'webgpu'].includes(work.device)) return null;
  // Lengths belong to the environments and to the model that plays them.
  const alike = run && run.work.tags === work.tags;
  const asPlayed = alike ? { ...work, sampled: run.work.sampled, tokens: run.work.tokens, kept: run.work.kept } : work;
  const generation = sampling(asPlayed) * (run ? run.generation / sampling(run.work) : 1);
  const training = updating(asPlayed) * (run ? run.rest / updating(run.work) : 1);
  return {
    generation_s: generation,
    training_s: training,
    step_s: generation + training,
    total_s: steps * (generation + training),
    tokens: {
      sampled: asPlayed.episodes * asPlayed.sampled,
      trained: asPlayed.episodes * asPlayed.tokens * asPlayed.kept,
    },
    basis: !run ? 'assumed' : alike && sameModel(run) ? 'measured' : 'scaled',
    run: run ? { id: run.id, name: run.name } : null,
  };
}

const sampling = ({ episodes, sampled, parameters }: Workload): number =>
  episodes * sampled * (cost.sampled.fixed + cost.sampled.parameter * parameters);

function updating({ episodes, tokens, kept, passes, parameters, adapters }: Workload): number {
  const { fixed, parameter } = adapters ? cost.trainedAdapters : cost.trained;
  return episodes * tokens * kept * passes * (fixed + parameter * parameters);
}
