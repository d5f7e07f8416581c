// Requests and replies of an inspection process: JSON-RPC over standard input and output of `ragen inspect --stdio`.
// The process opens a run independently of the run's trainer, reads the run folder, and writes only what-if episodes.
// Requests can be cancelled; a failed request returns a one-sentence message. Log-probs are natural logarithms at the
// sampling temperature of training. Values that do not apply to a token are null.
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { Episode } from '../run-data/episode';
import type { ExplainedPart, HeatMaps } from './heat-maps';

/**
 * Error codes. `cancelledCode`: the request was cancelled. `failedCode`: the request failed, and the message gives the
 * reason.
 */
export const cancelledCode = -32800;
export const failedCode = 1;

/**
 * An episode of a run. Ids ending in `-w1`, `-w2` … are what-if episodes (`episodeFile` in run-file-names.ts returns
 * their file).
 */
export interface EpisodeRef {
  /** Absolute path of the run folder. */
  folder: string;
  mode: 'train' | 'val';
  step: number;
  id: string;
}

/**
 * The run's files that the user allows this request to execute (run-trust.ts). A file is executed only if it is signed,
 * permanently accepted, or accepted here.
 */
export interface AcceptedCode {
  /** SHA-256 (hex) of the accepted files. */
  accepted?: string[];
}

/** Name that selects the initial weights. All other names select a checkpoint, such as `step-000020`. */
export const initialWeights = 'initial';

export interface CheckpointChoice {
  name: string;
  /** Number of steps finished at the checkpoint; 0 for the initial weights. */
  step: number;
}

/** Returns the run's checkpoints, newest first, then the initial weights. */
export const checkpoints = new RequestType<{ folder: string }, CheckpointChoice[], void>('inspect/checkpoints');

/**
 * Decodes each token id, special tokens included, with the run's tokenizer. Returns one text per id; the concatenated
 * texts are the text of the sequence. Loads no model.
 */
export const pieces = new RequestType<{ folder: string; ids: number[] }, string[], void>('inspect/pieces');

export interface RescoreRequest extends EpisodeRef {
  /** Name of the checkpoint that scores the tokens; default: the newest checkpoint. */
  checkpoint?: string;
  /** If true, scores every token except the first, including prompts and states; otherwise only sampled tokens. */
  all?: boolean;
}

export interface LikelyToken {
  id: number;
  text: string;
  logprob: number;
}

/** A token of the episode, at the same index as in `tokens.ids`. */
export interface RescoredToken {
  id: number;
  text: string;
  /** Whether the token was sampled. */
  sampled: boolean;
  /** Log-prob under the checkpoint. This field and the following fields are null if the token was not scored. */
  logprob: number | null;
  /** Entropy of the full distribution at this position, in nats. */
  entropy: number | null;
  /** Rank of the token by probability at this position; 1 is the most likely token. */
  rank: number | null;
  /** The five most likely tokens at this position, in descending order; empty if the token was not scored. */
  top: LikelyToken[];
  /** Log-prob under the reference policy, if the run has one. */
  reference: number | null;
  /** The critic's value before the token, if the checkpoint has a critic. */
  value: number | null;
}

export interface Rescored {
  checkpoint: CheckpointChoice;
  temperature: number;
  hasReference: boolean;
  hasCritic: boolean;
  tokens: RescoredToken[];
}

export const rescore = new RequestType<RescoreRequest, Rescored, void>('inspect/rescore');

export interface HeatMapRequest extends EpisodeRef {
  /** The complete response by default. */
  part?: ExplainedPart;
  /** 1-based; all turns by default. */
  turn?: number;
  /** Name of a checkpoint; default: the one whose step is nearest to that of the weights that played the episode. */
  checkpoint?: string;
}

/** Computes the heat maps of an episode's pictures. */
export const heatMaps = new RequestType<HeatMapRequest, HeatMaps, void>('inspect/heatMaps');

/**
 * Parts of the response that the user has written. If `answer` is missing, the policy continues after the thought. If
 * `thought` is missing as well, the policy writes the complete turn.
 */
export interface GivenAnswer {
  thought?: string;
  answer?: string;
}

/**
 * Replays an episode up to `turn` (1-based), plays that turn with the user's or the policy's response, and then plays
 * the remaining turns.
 */
export interface WhatIfRequest extends EpisodeRef, AcceptedCode {
  turn: number;
  given: GivenAnswer;
  /**
   * Name of the checkpoint that plays the remaining turns. Null if the user plays these turns one at a time, with
   * `whatIfTurn`.
   */
  checkpoint: string | null;
  /** Seed of the random stream `what-if-sampling`. The stream also depends on the turn. */
  seed: number;
}

/** Current state of a what-if episode. */
export interface WhatIfState {
  /** Id of this what-if in `whatIfTurn` and `whatIfEnd`; valid until the episode is over. */
  session: number;
  episode: Episode;
  /** The written episode and its file name; null while the episode waits for the user's turn. */
  written: (EpisodeRef & { file: string }) | null;
  /** Names of the available actions; empty if any text is an action. */
  actions: string[];
  /**
   * Notes for the user. For example, a note says that the environment code differs from that of the original episode,
   * or that a replayed state differs from the recorded state.
   */
  notes: string[];
}

/** Starts a what-if. Resolves when the episode is over or waits for the user's turn. */
export const whatIf = new RequestType<WhatIfRequest, WhatIfState, void>('inspect/whatIf');
/** Plays the user's next turn. If `checkpoint` is given, that checkpoint then plays the remaining turns. */
export const whatIfTurn = new RequestType<
  { session: number; given: GivenAnswer; checkpoint: string | null },
  WhatIfState,
  void
>('inspect/whatIfTurn');
/**
 * Ends an unfinished what-if. The turns played so far are written as an episode if `keep` is true; otherwise they are
 * discarded.
 */
export const whatIfEnd = new RequestType<{ session: number; keep: boolean }, WhatIfState | null, void>(
  'inspect/whatIfEnd',
);

/** Tokens of the current turn as the policy samples them, in order; `turn` is 1-based. */
export const whatIfTokens = new NotificationType<{
  session: number;
  turn: number;
  tokens: { id: number; text: string; logprob: number }[];
}>('inspect/whatIfTokens');

/** Current phase of a request in a few words ("loading step-000020"), for progress display. */
export const inspectionPhase = new NotificationType<{ words: string }>('inspect/phase');

/** Returns the names of the episode's available actions, from which the user chooses. */
export const legalActions = new RequestType<EpisodeRef & AcceptedCode, string[], void>('inspect/legalActions');
