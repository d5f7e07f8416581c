// Inputs of the memory plan for an engine without a run, and the peak memory of a process that performs the steps of such
// a run (test/unit/models/memory/measure-peak.mjs).
import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';
import type { LoadOptions } from '../../extension/engine/load-options';
import type { Phase } from '../../extension/models/memory/memory-rows';
import type { PlanInput } from '../../extension/models/memory/plan-input';

const script = resolve('test/unit/models/memory/measure-peak.mjs');
const worker = resolve('dist/engine-worker.cjs');

/** Bytes that JavaScript may hold until garbage collection. */
export const uncollected = 64 * 2 ** 20;

export const plain: Omit<
  PlanInput,
  'decoder' | 'longest' | 'updateTokens' | 'criticTokens' | 'scoreTokens' | 'referenceTokens' | 'rollouts'
> = {
  stored: 'F32',
  lora: null,
  rolloutQuantization: 'none',
  baseQuantization: 'none',
  checkpointed: false,
  reference: false,
  critic: false,
  klLoss: false,
  lossMode: 'vanilla',
  diagnosisTokens: 0,
  environments: 0,
  sharesPrefixes: false,
  answer: 4,
  promptSharedBy: 0,
  trains: true,
  moments: { actor: 'float32', critic: 'float32' },
};

/** Every pass holds the same number of tokens. */
export const passes = (tokens: number) => ({
  ...{ updateTokens: tokens, criticTokens: tokens, scoreTokens: tokens, referenceTokens: tokens },
});

/** Pictures that the sequences of a measured process show, one each. */
export interface MeasuredPictures {
  folder: string;
  names: string[];
  imageToken: number;
  /** Image tokens of each picture. */
  tokens: number;
}

/** Returns the peak bytes of a process up to the end of each phase. */
export async function measuredPeaks(
  modelFolder: string,
  vocab: number,
  input: Omit<PlanInput, 'decoder'>,
  cacheFolder: string,
  pictures?: MeasuredPictures,
): Promise<Record<Phase, number>> {
  const { longest: length, rollouts, updateTokens, scoreTokens, critic, klLoss: kl, moments, lora } = input;
  const { diagnosisTokens, lossMode, rolloutQuantization, baseQuantization, checkpointed } = input;
  const load: LoadOptions = {
    ...{ modelFolder, adapterFolder: null, device: 'cpu', threads: 2, lora, rolloutQuantization, baseQuantization },
    ...{ checkpointed, referenceFolder: input.reference ? modelFolder : null, moments, critic, seed: 1 },
    ...(input.trainedEncoder && { trainsEncoder: true, encoderFolder: modelFolder }),
    ...{ maxPositions: length, cacheFolder, ...(pictures && { pictures: { folder: pictures.folder } }) },
  };
  const work = {
    ...{ diagnosisTokens, lossMode, pictures },
    ...{ load, vocab, rollouts, prompt: length - 4, length },
    ...{ updates: updateTokens / length, passTokens: updateTokens, scoreTokens, critic, kl },
  };
  const { stdout } = await promisify(execFile)(process.execPath, [script, worker, JSON.stringify(work)], {
    encoding: 'utf8',
  });
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Record<Phase, number>;
}
