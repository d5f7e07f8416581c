// Readable labels for the recorded names of spans. A name without a label is shown as recorded.
import type { SpanName } from '../../extension/run-data/timeline';

const labels: Partial<Record<string, string>> = {
  gen: 'Rollout',
  gen_max: 'Greedy baselines',
  filter: 'Filter',
  old_log_prob: 'Old log-probs',
  ref: 'Reference log-probs',
  values: 'Values',
  adv: 'Advantages',
  update_critic: 'Critic update',
  update_actor: 'Policy update',
  collapse_metrics: 'Collapse diagnosis',
  gradient_analysis: 'Gradient analysis',
  dump_rollouts: 'Write episodes',
  testing: 'Validation',
  save_checkpoint: 'Checkpoint',
  'open environments': 'Open environments',
  load: 'Load model',
  restore: 'Restore checkpoint',
  generate: 'Sample',
  step: 'Environment step',
  reset: 'Environment reset',
  score: 'Score',
  crossScore: 'Cross-score',
  analyseGradients: 'Analyse gradients',
  update: 'Policy mini-batch',
  updateCritic: 'Critic mini-batch',
  trainSupervised: 'Supervised mini-batch',
  tryLongest: 'Try longest batch',
  remember: 'Copy weights for undo',
  rollBack: 'Restore weights',
  state: 'Read optimizer state',
  parameters: 'Read weights',
  environment: 'Environment',
  prompt: 'Prompt',
  sampling: 'Sampling',
  'wait for the batch': 'Wait for the batch',
  'wait for the wave': 'Wait for the last environment',
};

/** Returns the label of a span. */
export const spanLabel = ({ lane, name }: SpanName): string =>
  lane === 'requests' || lane === 'publishing' ? name : (labels[name] ?? name);
