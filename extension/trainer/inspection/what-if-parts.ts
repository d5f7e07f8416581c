// What a what-if session works with: the run, its tokenizer, the recorded episode and who plays.
import type { Episode } from '../../run-data/episode';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { InspectedRun } from './inspected-run';
import type { ReplayedEnvironment } from './replayed-environment';
import type { PolicyTurn } from './scripted-turns';

/** What a what-if needs from its process. */
export interface WhatIfParts {
  session: number;
  run: InspectedRun;
  tokenizer: ChatTokenizer;
  environment: ReplayedEnvironment;
  origin: Episode;
  /** Runs work with the policy of a named checkpoint. */
  policy(checkpoint: string): PolicyTurn;
  onTokens(turn: number, tokens: { id: number; text: string; logprob: number }[]): void;
}
