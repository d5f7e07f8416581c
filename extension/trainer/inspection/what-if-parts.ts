// The inputs of a what-if session: the run, its tokenizer, the recorded episode, the environment and the policy.
import type { Episode } from '../../run-data/episode';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { InspectedRun } from './inspected-run';
import type { ReplayedEnvironment } from './replayed-environment';
import type { PolicyTurn } from './scripted-turns';

/** Inputs of a what-if session; the inspection process provides them. */
export interface WhatIfParts {
  session: number;
  run: InspectedRun;
  tokenizer: ChatTokenizer;
  environment: ReplayedEnvironment;
  origin: Episode;
  /** Returns a function that runs a callback with an engine in which the policy of the named checkpoint is loaded. */
  policy(checkpoint: string): PolicyTurn;
  onTokens(turn: number, tokens: { id: number; text: string; logprob: number }[]): void;
}
