// Requests and replies of a planning process: JSON-RPC over standard input and output of `ragen plan --stdio`. The
// process stays alive between requests, so a request does not pay for the start of Node.js. It keeps nothing of a
// configuration: every request reads the configuration's files, the model's config.json and the measured runs again.
import { RequestType } from 'vscode-jsonrpc';
import type { RunEstimate } from './new-run-page';

/** Error code of a rejected configuration and of every other failure; the message is one sentence. */
export const failedCode = 1;

/** An error in a configuration; line and column are 1-based. */
export interface PlanProblem {
  message: string;
  file?: string;
  line?: number;
  column?: number;
  key?: string;
}

/** Data of an error with `failedCode`; `problems` is empty unless the configuration was rejected. */
export interface PlanFailure {
  problems: PlanProblem[];
}

/** A configuration by name, by file or of an earlier run, with overrides `key=value`. */
export interface ConfigQuestion {
  /** Absolute path of the workspace folder. */
  workspace: string;
  configName?: string;
  /** Absolute path of a configuration file. */
  configFile?: string;
  /** Id of a run in the workspace. Its configuration is used, but `overrides` replace the overrides of the run. */
  run?: string;
  /**
   * Name of a checkpoint of `run`. The configuration is that of a fork from this checkpoint, and `overrides` apply to it.
   */
  checkpoint?: string;
  overrides: string[];
}

export interface PlanQuestion extends ConfigQuestion {
  /** Measured speed of the server on which the run would train: seconds, and tokens per second. */
  rates?: { round_trip_s?: number; sampled_per_s?: number };
}

/** Resolves and checks a configuration. Needs no model and no network. */
export const checkConfig = new RequestType<ConfigQuestion, { config: Record<string, unknown> }, PlanFailure>(
  'plan/check',
);
/** Checks a configuration and estimates memory and time of its run; reads the model's files, or fetches them. */
export const planConfig = new RequestType<
  PlanQuestion,
  { config: Record<string, unknown>; run: RunEstimate },
  PlanFailure
>('plan/run');
