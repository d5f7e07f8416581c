// Predicts the time of a step. The prediction assumes that each token takes a fixed time plus a time per parameter.
// These times are scaled by the measurements of an earlier run on the same processor and device. For the same model and
// environments, the prediction equals the measured times; otherwise it is extrapolated. There is no prediction for a
// GPU without a measured run.
import { median } from '../../common/mean-estimate';
import type { Manifest } from '../../run-data/run-manifest';
import type { MetricsLine } from '../../run-data/step-lines';
import type { RunConfig } from '../config/schema';
import { usesCritic, usesReference, usesTeacher } from './memory-input';
import type { PictureWork } from './planned-pictures';

/**
 * Seconds per token, fitted to measurements of three models on two threads of an AMD EPYC 7R13 (docs/PERFORMANCE.md):
 * * 0.4 M parameters (quickstart): 35 µs per trained token, 200 µs per sampled token including environments.
 * * 5.5 M parameters: 265 µs per trained token.
 * * 494 M parameters with adapters: 9.1 ms per trained token.
 */
const cost = {
  sampled: { fixed: 160e-6, parameter: 23e-12 },
  trained: { fixed: 25e-6, parameter: 35e-12 },
  trainedAdapters: { fixed: 25e-6, parameter: 18e-12 },
};
/**
 * Seconds per patch and parameter of a vision encoder: a third of the time of a trained token, which includes the backward
 * pass.
 */
const encodedParameter = 12e-12;
/** Time of a forward pass relative to a pass with gradients. */
const forwardShare = 1 / 3;
/**
 * Assumed number of sampled tokens per episode, as a share of the maximum, if no measurement exists. The share is below
 * 1, because many episodes end before their last turn and responses end before their limit. For example, quickstart
 * samples 38 of 320 tokens; models with long reasoning come closer to the maximum.
 */
const usedShare = 0.2;
/** Assumed length of the first prompt in tokens, if no measurement exists. */
const assumedPrompt = 200;
/** Number of steps at the end of a run over which medians are computed. */
const recent = 20;

/** The work of one step. Token counts are per episode. */
export interface Workload {
  parameters: number;
  adapters: boolean;
  device: string;
  tags: string;
  episodes: number;
  /** Sampled tokens per episode. */
  sampled: number;
  /** All tokens per episode. */
  tokens: number;
  /** Share of the tokens that belong to kept episodes, 0…1. */
  kept: number;
  /** Number of passes over the kept tokens per step. A pass without gradients is counted as a third. */
  passes: number;
  /** The teacher that scores the kept tokens; null without one. */
  teacher: TeacherWork | null;
  /** The pictures that a vision encoder encodes in a step; null without pictures. */
  pictures: PictureWork | null;
}

/** A teacher (workbench.distillation): its name in the configuration, and its parameters if they are known. */
export interface TeacherWork {
  name: string;
  /** Null if the teacher is on a server, or not downloaded yet. */
  parameters: number | null;
}

/** Measurements of a run: its workload, and the median times of its last steps, in seconds. */
export interface MeasuredRun {
  id: string;
  name: string;
  model: string;
  work: Workload;
  generation: number;
  /** Seconds in which the teacher scores; 0 without a teacher. */
  scoring: number;
  /** Seconds of a step, excluding generation, the teacher and validation. */
  rest: number;
}

/** Predicted seconds of a step, excluding validation, and the basis of the prediction. */
export interface StepTime {
  generation_s: number;
  training_s: number;
  step_s: number;
  /** Seconds of all training steps of the run. */
  total_s: number;
  tokens: { sampled: number; trained: number };
  /**
   * `measured`: from a run with the same model and environments; `scaled`: extrapolated from another run on this
   * processor; `assumed`: from constants measured on another machine; `rates`: from the rates of a server.
   */
  basis: 'measured' | 'scaled' | 'assumed' | 'rates';
  /** The measured run on which the prediction is based; null if `basis` is `assumed` or `rates`. */
  run: { id: string; name: string } | null;
}

/** Returns where the model of a run is: on a device of this machine, or on a server. */
const placeOf = ({ workbench: { engine, engine_url, device } }: RunConfig): string =>
  engine === 'local' ? device : (engine_url ?? engine);

/** Returns the name of the teacher of a configuration; null without a teacher. */
function teacherName(config: RunConfig): string | null {
  const { distillation } = config.workbench;
  if (!usesTeacher(config) || distillation === null) return null;
  const { teacher, service, server } = distillation;
  return teacher ?? service ?? [server?.url, server?.model].join(' ');
}

/**
 * Returns the workload of a configuration. Token counts are estimates from the configured limits.
 * @param teacherParameters number of the teacher's parameters; null without a teacher or if it is unknown
 * @param pictures what a vision encoder encodes; null without pictures
 */
export function workloadOf(
  config: RunConfig,
  parameters: number,
  teacherParameters: number | null = null,
  pictures: PictureWork | null = null,
): Workload {
  const teacher = teacherName(config);
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
    device: placeOf(config),
    tags: [...env_configs.tags].sort().join(),
    episodes: env_groups * group_size,
    sampled,
    tokens: Math.min(rollout.max_model_len, assumedPrompt + 2 * sampled + (pictures?.tokens ?? 0)),
    kept: 1,
    // The critic is as large as the policy, so passes of the critic and of the policy cost the same.
    passes: actor.ppo_epochs + critic * (config.critic.ppo_epochs + forwardShare) + forwards * forwardShare,
    teacher: teacher === null ? null : { name: teacher, parameters: teacherParameters },
    pictures,
  };
}

/**
 * Returns the measurements of a run; null if its metrics are incomplete, for example before its first step.
 * @param lines metrics lines in step order
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
  const scoring = medianOf(line => Number(line['timing_s/teacher'] ?? 0));
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
    scoring,
    rest: Math.max(0, step - generation - scoring),
  };
}

/**
 * Predicts the time of one step, and of `steps` steps, with the workload `work`.
 * @param runs measured runs on this processor, newest first
 * @returns null for a GPU on which no run was measured
 */
export function stepTime(work: Workload, model: string, steps: number, runs: readonly MeasuredRun[]): StepTime | null {
  const { run, sameModel } = measuredFor(work, model, runs);
  if (!run && ['cuda', 'webgpu'].includes(work.device)) return null;
  const alike = run?.work.tags === work.tags;
  const asPlayed = playedAs(work, run);
  // The rollout of a run with the same model and environments encoded the same pictures.
  const encoded = alike && sameModel ? 0 : encoding(work);
  const generation = (sampling(asPlayed) + encoded) * (run ? run.generation / sampling(run.work) : 1);
  const speed = run ? run.rest / updating(run.work) : 1;
  const training = updating(asPlayed) * speed + (teaching(asPlayed, speed, runs) ?? 0);
  return {
    generation_s: generation,
    training_s: training,
    step_s: generation + training,
    total_s: steps * (generation + training),
    tokens: {
      sampled: asPlayed.episodes * asPlayed.sampled,
      trained: asPlayed.episodes * asPlayed.tokens * asPlayed.kept,
    },
    basis: !run ? 'assumed' : alike && sameModel ? 'measured' : 'scaled',
    run: run ? { id: run.id, name: run.name } : null,
  };
}

/**
 * Returns the measured run that is most similar to the workload `work` on the same device or server, and whether that
 * run trained the same model.
 */
export function measuredFor(
  work: Workload,
  model: string,
  runs: readonly MeasuredRun[],
): { run: MeasuredRun | undefined; sameModel: boolean } {
  const onDevice = runs.filter(run => run.work.device === work.device);
  const sameModel = (run: MeasuredRun): boolean => run.model === model && run.work.adapters === work.adapters;
  const run =
    onDevice.find(each => sameModel(each) && each.work.tags === work.tags) ?? onDevice.find(sameModel) ?? onDevice[0];
  return { run, sameModel: run !== undefined && sameModel(run) };
}

/**
 * Returns `work` with the token counts of the measured run. Token counts depend on the environments, so if `run` has
 * other tags than `work`, `work` is returned unchanged.
 */
export const playedAs = (work: Workload, run: MeasuredRun | undefined): Workload =>
  run?.work.tags === work.tags
    ? { ...work, sampled: run.work.sampled, tokens: run.work.tokens, kept: run.work.kept }
    : work;

/**
 * Returns the seconds in which the teacher of `work` scores a step: from the newest run with this teacher, else from its
 * parameters and the `speed` relative to the fitted times. Null if neither is known.
 */
export function teaching(work: Workload, speed: number, runs: readonly MeasuredRun[]): number | null {
  const { teacher } = work;
  if (teacher === null) return 0;
  const run = runs.find(({ scoring, work: { teacher: other } }) => scoring > 0 && other?.name === teacher.name);
  if (run) return run.scoring * (keptTokens(work) / keptTokens(run.work));
  if (teacher.parameters === null) return null;
  const { fixed, parameter } = cost.trained;
  return speed * forwardShare * keptTokens(work) * (fixed + parameter * teacher.parameters);
}

const keptTokens = ({ episodes, tokens, kept }: Workload): number => episodes * tokens * kept;

const sampling = ({ episodes, sampled, parameters }: Workload): number =>
  episodes * sampled * (cost.sampled.fixed + cost.sampled.parameter * parameters);

const encoding = ({ episodes, pictures }: Workload): number =>
  pictures === null ? 0 : episodes * pictures.patches * pictures.parameters * encodedParameter;

function updating(work: Workload): number {
  const { fixed, parameter } = work.adapters ? cost.trainedAdapters : cost.trained;
  return keptTokens(work) * work.passes * (fixed + parameter * work.parameters);
}
