// Learning-rate schedules with verl's names. After a linear warm-up from zero, the rate is constant or decays to zero,
// linearly or along a cosine.

export interface LearningRateSchedule {
  lr: number;
  /** Warm-up steps; 0 or −1 for none. */
  lr_warmup_steps: number;
  lr_scheduler_type: 'constant' | 'linear' | 'cosine';
  /** Steps over which a linear or cosine rate decays to zero. */
  total_training_steps: number;
}

/** Returns the learning rate of training step `step`, counted from 1. */
export function learningRate(
  step: number,
  { lr, lr_warmup_steps, lr_scheduler_type, total_training_steps }: LearningRateSchedule,
): number {
  const warmup = Math.max(lr_warmup_steps, 0);
  if (step <= warmup) return (lr * step) / (warmup + 1);
  if (lr_scheduler_type === 'constant') return lr;
  const done = Math.min(1, (step - 1 - warmup) / Math.max(1, total_training_steps - warmup));
  return lr_scheduler_type === 'linear' ? lr * (1 - done) : (lr * (1 + Math.cos(Math.PI * done))) / 2;
}
