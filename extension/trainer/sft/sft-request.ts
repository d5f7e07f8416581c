// Request and result of a fine-tuning, and the names of the files in its folder. The result is also stored in the
// folder. If the same request is repeated, the stored result is returned.
import type { FineTuneStep } from './fine-tune';
import type { SftConfig } from './sft-config';

export interface SftRequest {
  config: SftConfig;
  hash: string;
  workspace: string;
  presetFolders: readonly string[];
  /** Absolute path of the model to start from. */
  modelFolder: string;
  /**
   * If the signal aborts with RunStopped, the current work stops, and a checkpoint of the last finished step is
   * written.
   */
  signal: AbortSignal;
  onStep(step: FineTuneStep, total: number): void;
  /** Receives a label of the current work and its progress. */
  onProgress?(what: string, done: number, of: number): void;
  printLine(line: string): void;
}

export interface SftResult {
  folder: string;
  /** Path of the finished model's folder; null if the training was stopped. */
  model: string | null;
  steps: number;
  total_steps: number;
  demonstrations: { train: number; val: number };
  /**
   * Mean cross-entropy of the validation demonstrations before the first step and after the last, in nats per token;
   * null if not measured.
   */
  val_loss: { before: number | null; after: number | null };
}

export const sftFiles = { about: 'sft.json', metrics: 'metrics.jsonl', model: 'model' } as const;
