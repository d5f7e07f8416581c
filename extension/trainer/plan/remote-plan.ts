// Plans a run whose model is on a server: requests in flight, bytes of a step, memory of this machine, and what limits
// the time of a step. Bytes and memory assume full lengths (response_length in every turn, max_model_len); the time uses
// the expected number of tokens. Validation, diagnosis and checkpoints are not included.
import type { RunConfig } from '../config/schema';
import { measured as measuredMemory } from '../../models/memory/measured-memory';
import type { MemoryPlan } from '../../models/memory/memory-plan';
import type { PlanRow } from '../../models/memory/memory-rows';
import { requestTokens } from '../../models/tinker/server-model';
import { samplingSlots } from '../../models/tinker/request-slots';
import { environmentProcesses, usesCritic, usesReference } from './memory-input';
import type { StepTime, Workload } from './step-time';

/**
 * The speed of a server: how many tokens it processes per second, and how many seconds a request for one token takes.
 */
export interface ServerRates {
  round_trip_s: number;
  sampled_per_s: number;
  /** Tokens per second in passes without gradients, such as for log-probs. */
  scored_per_s: number;
  /** Tokens per second in passes with gradients. */
  trained_per_s: number;
}

/** Where the rates are from. */
export type RatesBasis = 'measured on the server' | 'given' | 'assumed';

/** Rates that are assumed if none are given or measured: the order of magnitude of a 7 B model on one large GPU. */
export const assumedRates: ServerRates = {
  round_trip_s: 0.05,
  sampled_per_s: 5000,
  scored_per_s: 30_000,
  trained_per_s: 10_000,
};

/** What a step exchanges with the server. */
export interface RemotePlan {
  url: string;
  rates: ServerRates & { basis: RatesBasis };
  /** Maximum number of rows that are sampled at the same time. Each row occupies one HTTP request. */
  rows_in_flight: number;
  /** HTTP requests of a step. */
  requests: number;
  /** Bytes of a step's requests and responses. */
  bytes: { sent: number; received: number };
  /** What the rollout waits for: the server's rate, the round trips of its requests, or this machine. */
  limit: RolloutLimit;
}

export type RolloutLimit = 'sampling rate' | 'round trips' | 'this machine';

/**
 * Number of characters of a log-prob in JSON, including the separator. JSON prints a float32 with the digits of a
 * float64.
 */
const numberBytes = 20;
/** Number of characters that are the same in every request or response: its head and the constant parts of its body. */
const envelope = { request: 480, response: 230 };
/** Assumed number of tokens in the first prompt, and in the text between two responses. */
const assumed = { prompt: 200, between: 100 };
/**
 * CPU seconds that the trainer's main thread takes for each sampled response and for each trained token, as measured by
 * test/bench/remote/scale.mjs (docs/PERFORMANCE.md).
 */
const trainerSeconds = { response: 1e-3, trainedToken: 1.5e-6 };
/**
 * Bytes of this machine's memory per token. `episode` is for a token of an episode, including the episode's text, its
 * record, and garbage that is not collected yet. `request` is for a token of a request that is being written or read.
 * Both are fitted to measurements by test/bench/remote/scale.mjs with 1024 and with 4096 episodes.
 */
const tokenBytes = { episode: 120, request: 100 };
/** Number of scoring requests that are in flight, and thus in memory, at the same time. */
const scoringRequests = 4;

/**
 * The numbers from which the requests and bytes of a step are computed. All episodes are assumed to have full length.
 */
export interface RemoteSizes {
  episodes: number;
  turns: number;
  /** Sampled tokens of a turn. */
  response: number;
  /** Maximum tokens of an episode. */
  longest: number;
  vocabSize: number;
  /**
   * Numbers of passes over the step's episodes: `forwards` counts the passes without gradients, `updates` counts the
   * passes with gradients.
   */
  forwards: number;
  updates: number;
  /** Number of optimizer steps in each pass with gradients. */
  miniBatches: number;
}

/** Returns the sizes of a configuration. */
export function remoteSizes(config: RunConfig, vocabSize: number): RemoteSizes {
  const { actor, rollout } = config.actor_rollout_ref;
  const { env_groups, group_size } = config.es_manager.train;
  const episodes = env_groups * group_size;
  const miniBatches = Math.max(1, Math.ceil(episodes / actor.ppo_mini_batch_size));
  const scored = !config.algorithm.rollout_correction.bypass_mode;
  const critic = Number(usesCritic(config));
  return {
    episodes,
    turns: config.agent_proxy.max_turn,
    response: Math.min(rollout.response_length, rollout.max_model_len),
    longest: rollout.max_model_len,
    vocabSize,
    // Every optimizer step needs the current log-probs, which take a pass without gradients. The first optimizer step
    // needs no such pass if log-probs were scored before the update.
    forwards: actor.ppo_epochs + (scored ? 1 - 1 / miniBatches : 0) + Number(usesReference(config)) + critic,
    updates: actor.ppo_epochs + critic * config.critic.ppo_epochs,
    miniBatches,
  };
}

/** Returns the number of requests and bytes of a step, assuming that all episodes have full length. */
export function trafficOf(sizes: RemoteSizes): { requests: number; bytes: RemotePlan['bytes'] } {
  const { episodes, turns, response, longest, vocabSize, forwards, updates, miniBatches } = sizes;
  const idBytes = String(vocabSize).length + 1;
  const bytes = { sent: 0, received: 0 };
  const most = Math.max(0, longest - response);
  for (let turn = 0; turn < turns; turn++) {
    const prompt = Math.min(most, assumed.prompt + turn * (response + assumed.between));
    bytes.sent += episodes * (2 * envelope.request + prompt * idBytes);
    bytes.received += episodes * (2 * envelope.response + response * (idBytes + numberBytes));
  }
  const tokens = episodes * lengthOf(sizes);
  const trained = Math.min(1, (turns * response) / lengthOf(sizes));
  const zero = 2; // "0," or "1,"
  bytes.sent += tokens * forwards * (2 * idBytes + 3 * zero);
  bytes.sent += tokens * updates * (2 * idBytes + zero + 2 * (trained * numberBytes + (1 - trained) * zero));
  bytes.received += tokens * (forwards + updates) * 2 * numberBytes; // log-probs and losses
  const batches = Math.ceil(tokens / requestTokens);
  const passes = Math.ceil((forwards + updates) * Math.max(batches, miniBatches));
  const steps = Math.ceil(updates) * miniBatches + 1; // and the publication
  const requests = 2 * (episodes * turns + passes + steps);
  bytes.sent += 2 * (passes + steps) * envelope.request;
  bytes.received += 2 * (passes + steps) * envelope.response;
  return { requests, bytes };
}

/** Returns the number of tokens in an episode of full length. */
const lengthOf = ({ turns, response, longest }: RemoteSizes): number =>
  Math.min(longest, assumed.prompt + turns * response + (turns - 1) * assumed.between);

/**
 * Returns the memory that the run needs on this machine: for the trainer, its environments, the episodes of a step and
 * the largest requests.
 */
export function remoteMemory(config: RunConfig, sizes: RemoteSizes): MemoryPlan {
  const trains = !config.trainer.val_only;
  const environments = environmentProcesses(config, trains);
  const val = config.es_manager.val.env_groups * config.es_manager.val.group_size;
  const episodes = Math.max(trains ? sizes.episodes : 0, val);
  const tokens = episodes * lengthOf(sizes);
  const slots = Math.min(samplingSlots(config.workbench.engine_requests), episodes);
  const batch = Math.min(sizes.episodes * lengthOf(sizes), scoringRequests * requestTokens);
  const rows: PlanRow[] = [
    {
      phase: 'loading',
      what: 'process',
      bytes: measuredMemory.process,
      how: 'Node with code, measured; the model is on the server',
    },
    {
      phase: 'loading',
      what: 'environments',
      bytes: environments * measuredMemory.environments,
      how: `${environments} × ${measuredMemory.environments / 2 ** 20} MiB per process, measured without the environment's own data`,
    },
    {
      phase: 'rollout',
      what: 'episodes',
      bytes: tokens * tokenBytes.episode,
      how: `${episodes} episodes × ${lengthOf(sizes)} tokens × ${tokenBytes.episode} bytes, measured`,
    },
    {
      phase: 'rollout',
      what: 'sampling requests',
      bytes: slots * sizes.longest * tokenBytes.request,
      how: `${slots} rows in flight × ${sizes.longest} tokens × ${tokenBytes.request} bytes`,
    },
    ...(trains
      ? [
          {
            phase: 'policy update' as const,
            what: 'training requests',
            bytes: batch * tokenBytes.request,
            how: `${scoringRequests} requests of at most ${requestTokens} tokens × ${tokenBytes.request} bytes`,
          },
        ]
      : []),
  ];
  const phases = [...new Set(rows.map(({ phase }) => phase))].map(phase => ({
    phase,
    held: rows.slice(0, rows.findLastIndex(row => row.phase === phase) + 1).reduce((sum, { bytes }) => sum + bytes, 0),
  }));
  const { phase, held: bytes } = phases.at(-1)!;
  return { rows, phases, peak: { phase, bytes } };
}

/**
 * Predicts, from a server's rates, how long a step takes and what limits the speed of the step's rollout.
 * @param work the expected tokens
 * @param teacherSeconds seconds in which a teacher scores a step
 */
export function remoteTime(
  config: RunConfig,
  sizes: RemoteSizes,
  work: Workload,
  rates: ServerRates,
  teacherSeconds = 0,
): { time: StepTime; limit: RolloutLimit } {
  const { episodes, sampled, tokens, kept } = work;
  const slots = Math.min(samplingSlots(config.workbench.engine_requests), episodes);
  const responses = episodes * Math.min(sizes.turns, Math.max(1, sampled / sizes.response));
  const waits: Record<RolloutLimit, number> = {
    'sampling rate': (episodes * sampled) / rates.sampled_per_s,
    'round trips': (responses / slots) * rates.round_trip_s,
    'this machine': responses * trainerSeconds.response,
  };
  const limit = (Object.keys(waits) as RolloutLimit[]).reduce((a, b) => (waits[b] > waits[a] ? b : a));
  const generation_s = waits[limit] + rates.round_trip_s; // the last row's answer
  const trained = episodes * tokens * kept;
  const onServer = trained * (sizes.forwards / rates.scored_per_s + sizes.updates / rates.trained_per_s);
  const requests = (sizes.forwards + 2 * sizes.updates) * sizes.miniBatches;
  const training_s =
    onServer +
    requests * rates.round_trip_s +
    trained * (sizes.forwards + sizes.updates) * trainerSeconds.trainedToken +
    teacherSeconds;
  const step_s = generation_s + training_s;
  return {
    limit,
    time: {
      generation_s,
      training_s,
      step_s,
      total_s: config.trainer.total_training_steps * step_s,
      tokens: { sampled: episodes * sampled, trained },
      basis: 'rates',
      run: null,
    },
  };
}
