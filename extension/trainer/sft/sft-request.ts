// Request and result of a fine-tuning, and the names of the files in its folder. The result is stored in the folder, so
// that a repeated request returns it at once.
import type { FineTuneStep } from './fine-tune';
import type { SftConfig } from './sft-config';

export interface SftRequest {
  config: SftConfig;
  hash: string;
  workspace: string;
  presetFolders: readonly string[];
  /** Absolute path of the model to start from. */
  modelFolder: string;
  /** An abort with RunStopped ends the current work at once, with a checkpoint of the last finished step. */
  signal: AbortSignal;
  onStep(step: FineTuneStep, total: number): void;
  /** Receives the current work and its progress. */
  onProgress?(what: string, done: number, of: number): void;
  printLine(line: string): void;
}

export interface SftResult {
  folder: string;
  /** The finished model's folder; null if the training was stopped. */
  model: string | null;
  steps: number;
  total_steps: number;
  demonstrations: { train: number; val: number };
  /** Cross-entropy of the validation demonstrations in nats per token, before the first step and after the last. */
  val_loss: { before: number | null; after: number | null };
}

export const sftFiles = { about: 'sft.json', metrics: 'metrics.jsonl', model: 'model' } as const;
