// Supervised fine-tuning: optimizer steps on the cross-entropy of the tokens that a demonstrator wrote. Other tokens of
// an episode do not contribute to the loss. The order of the samples in an epoch depends only on the epoch's seed, so a
// training resumed from a checkpoint gives the same numbers as an uninterrupted one.
import { splitMiniBatches } from '../../algorithms/mini-batches';
import { learningRate } from '../../algorithms/learning-rate';
import type { Engine } from '../../engine/engine';
import type { BareSample, PassBudget } from '../../engine/training-samples';
import { RandomStream } from '../../engine/sampling/random-stream';
import { deriveSeed } from '../rollout/seeds';
import type { SftConfig } from './sft-config';

export type SftSample = BareSample;

export type FineTuneStep = {
  /** Number of the step, from 1. */
  step: number;
  epoch: number;
  /** Mean cross-entropy of the batch before the update, in nats per token. */
  'train/loss': number;
  'train/lr': number;
  /** Mean cross-entropy of all validation demonstrations after the step; absent if no validation was due. */
  'val/loss'?: number;
};

/** Returns the total number of steps of a training. */
export function stepsOf(samples: number, { data, trainer }: Pick<SftConfig, 'data' | 'trainer'>): number {
  const all = trainer.total_epochs * Math.ceil(samples / data.train_batch_size);
  return Math.min(all, trainer.total_training_steps ?? all);
}

/** The point from which a training continues. */
export interface FineTuneStart {
  /** Number of finished steps. */
  done: number;
  /**
   * Metrics of the step after `done`, if this step's update is finished but its validation was interrupted; otherwise
   * undefined.
   */
  unvalidated?: FineTuneStep;
}

export interface FineTuneListener {
  /** Called after the optimizer step, before a validation. */
  onTrained?(step: FineTuneStep): void;
  /**
   * Called at the end of a step. `save` is true if a checkpoint is due. If the returned promise resolves with false,
   * the training ends.
   */
  onStep(step: FineTuneStep, save: boolean): Promise<boolean>;
}

/**
 * Trains to the last step. Throws RunStopped if the engine is stopped; `onStep` has then been called only for complete
 * steps.
 */
export async function fineTune(
  engine: Pick<Engine, 'trainSupervised' | 'score'>,
  samples: { train: readonly SftSample[]; val: readonly SftSample[] },
  config: SftConfig,
  { done, unvalidated }: FineTuneStart,
  listener: FineTuneListener,
): Promise<void> {
  const { data, optim, trainer } = config;
  const total = stepsOf(samples.train.length, config);
  const perEpoch = Math.ceil(samples.train.length / data.train_batch_size);
  const schedule = {
    lr: optim.lr,
    lr_warmup_steps: Math.round(optim.warmup_steps_ratio * total),
    lr_scheduler_type: optim.lr_scheduler,
    total_training_steps: total,
  };
  const due = (frequency: number, step: number): boolean =>
    step === total || step % (frequency > 0 ? frequency : perEpoch) === 0;
  const finish = async (step: FineTuneStep): Promise<boolean> => {
    const validated = due(trainer.test_freq, step.step)
      ? { ...step, 'val/loss': await crossEntropy(engine, samples.val, config) }
      : step;
    return listener.onStep(validated, due(trainer.save_freq, step.step));
  };
  if (unvalidated && !(await finish(unvalidated))) return;
  for (let step = (unvalidated?.step ?? done) + 1; step <= total; step++) {
    const epoch = Math.floor((step - 1) / perEpoch);
    const order = new RandomStream(deriveSeed('sft-order', trainer.seed, epoch));
    const batch = splitMiniBatches(samples.train.length, data.train_batch_size, order)[(step - 1) % perEpoch];
    const lr = learningRate(step, schedule);
    const loss = await engine.trainSupervised(
      Array.from(batch, i => samples.train[i]),
      passOf(config),
      { lr, betas: [...optim.betas], eps: 1e-8, weight_decay: optim.weight_decay, grad_clip: optim.clip_grad },
      deriveSeed('adapter-dropout', trainer.seed, step),
    );
    const metrics: FineTuneStep = { step, epoch: epoch + 1, 'train/loss': loss, 'train/lr': lr };
    listener.onTrained?.(metrics);
    if (!(await finish(metrics))) return;
  }
}

/** Mean cross-entropy over all tokens with mask 1, in nats. */
export async function crossEntropy(
  engine: Pick<Engine, 'score'>,
  samples: readonly SftSample[],
  config: SftConfig,
): Promise<number> {
  const { logprobs } = await engine.score('actor', [...samples], passOf(config), 1);
  let sum = 0;
  let tokens = 0;
  samples.forEach(({ mask }, i) =>
    mask.forEach((bit, t) => {
      if (!bit) return;
      sum -= logprobs[i][t];
      tokens++;
    }),
  );
  return sum / tokens;
}

const passOf = ({ data }: SftConfig): PassBudget => ({
  maxTokens: data.micro_batch_size_per_gpu * data.max_length,
  maxRows: Number.MAX_SAFE_INTEGER,
});
