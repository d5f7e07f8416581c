// What an inspection process is asked, and what it says: JSON-RPC over standard input and output of `ragen inspect --stdio`. It opens a run
// beside its trainer, reads the run folder, and writes nothing but what-if episodes. A request may be cancelled. A request that fails says
// one sentence. Log-probs are natural and at the temperature that training samples with; what does not apply is null.
import { NotificationType, RequestType } from 'vscode-jsonrpc';
import type { Episode } from './run-folder';

/** Codes of errors: the request was cancelled, or it failed with the sentence that the error's message is. */
export const cancelledCode = -32800;
export const failedCode = 1;

/** One episode of a run. Ids that end in `-w1`, `-w2` … are what-if episodes (`episodeFile` of run-folder.ts knows where they lie). */
export interface EpisodeRef {
  /** Absolute path of the run's folder. */
  folder: string;
  mode: 'train' | 'val';
  step: number;
  id: string;
}

/** What of the run's code the user accepts for this request (run-trust.ts): files that are neither signed nor accepted for good are not executed. */
export interface AcceptedCode {
  /** sha256 (hex) of files. */
  accepted?: string[];
}

/** The weights that a run began with; other names are those of checkpoints: `step-000020`. */
export const initialWeights = 'initial';

export interface CheckpointChoice {
  name: string;
  /** Steps that were finished when it was written; 0 for the initial weights. */
  step: number;
}

/** Newest first, the initial weights last. */
export const checkpoints = new RequestType<{ folder: string }, CheckpointChoice[], void>('inspect/checkpoints');

/** Texts of token ids under the run's tokenizer, special tokens included; together they are the text of all. No model is loaded. */
export const pieces = new RequestType<{ folder: string; ids: number[] }, string[], void>('inspect/pieces');

export interface RescoreRequest extends EpisodeRef {
  /** The newest where nothing is said. */
  checkpoint?: string;
  /** Score every token that has one before it, prompts and states too; else those that were sampled. */
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
  /** It was sampled. */
  sampled: boolean;
  /** Under the checkpoint; null where it was not scored, as are the others. */
  logprob: number | null;
  /** Of the whole distribution here, in nats. */
  entropy: number | null;
  /** 1 for the likeliest. */
  rank: number | null;
  /** The five likeliest tokens here, likeliest first; empty where it was not scored. */
  top: LikelyToken[];
  /** Under the reference policy, where the run has one. */
  reference: number | null;
  /** The critic's value before the token, where the checkpoint has a critic. */
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

/** What of an answer is given by hand. Without an answer the policy writes it behind the thought; with neither it writes the whole turn. */
export interface GivenAnswer {
  thought?: string;
  answer?: string;
}

/** Plays an episode again up to `turn` (from 1), gives that turn by hand or to the policy, and goes on from there. */
export interface WhatIfRequest extends EpisodeRef, AcceptedCode {
  turn: number;
  given: GivenAnswer;
  /** Whose turns the rest are: a checkpoint's name, or null for the user, who gives one turn at a time by `whatIfTurn`. */
  checkpoint: string | null;
  /** Of the random stream `what-if-sampling`, with the turn. */
  seed: number;
}

/** A what-if episode as it stands. */
export interface WhatIfStanding {
  /** Names it in `whatIfTurn` and `whatIfEnd` until it is over. */
  session: number;
  episode: Episode;
  /** Where it was written once it is over, with the name of its file; null while it waits for a turn. */
  written: (EpisodeRef & { file: string }) | null;
  /** Names of the actions that there are; empty where any text is one. */
  actions: string[];
  /** What the reader should know: the code was not the one that played, or a replayed state came out otherwise. */
  notes: string[];
}

/** Resolves when the episode is over, or when it waits for the user. */
export const whatIf = new RequestType<WhatIfRequest, WhatIfStanding, void>('inspect/whatIf');
/** The user's next turn; where `checkpoint` names one, that plays from here on to the end. */
export const whatIfTurn = new RequestType<
  { session: number; given: GivenAnswer; checkpoint: string | null },
  WhatIfStanding,
  void
>('inspect/whatIfTurn');
/** Ends a what-if that is not over; what was played is written where `keep`, else forgotten. */
export const whatIfEnd = new RequestType<{ session: number; keep: boolean }, WhatIfStanding | null, void>(
  'inspect/whatIfEnd',
);

/** Tokens of the turn in hand as the policy samples them, in order; `turn` from 1. */
export const whatIfTokens = new NotificationType<{
  session: number;
  turn: number;
  tokens: { id: number; text: string; logprob: number }[];
}>('inspect/whatIfTokens');

/** What a request is doing, in a few words ("loading step-000020"), for whoever waits. */
export const inspectionPhase = new NotificationType<{ words: string }>('inspect/phase');

/** Names of the actions that the episode has, for whoever is to choose one. */
export const legalActions = new RequestType<EpisodeRef & AcceptedCode, string[], void>('inspect/legalActions');
