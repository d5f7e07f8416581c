// Messages between the extension host and the Collapse page. The page gets the run's numbers at once and as they grow; matrices, gradients
// and groups lie in files a step each, which it asks for one at a time, for the step that is looked at.
import type { NotificationType, RequestType } from 'vscode-messenger-common';
import type { CollapseFamily, GradientAnalysisRecord } from './diagnostics';
import type { MetricNumbers } from './metric-segments';
import type { RunSummary } from './pages';
import type { RunEvent } from './run-folder';

/** Keys of metrics.jsonl that the page draws or reads: what is sent of a line. */
export const collapseKeys =
  /^(collapse|thoughts\/|rollout\/(in_group_reward|chosen_in_group_reward|filter_|invalid_answer)|actor\/(entropy|entropy_limit|grad_norm)$|response_length\/mean$|(train|val-env)\/[^/]+\/success$)/;

/** The rollout filter as the run began (`actor_rollout_ref.rollout.rollout_filter_*`); `setting` events change its value. */
export interface FilterSettings {
  strategy: string;
  value: number;
  type: string;
  metric: string;
  include_zero: boolean;
  top_p_prob_mode: string;
  /** Groups that say nothing are left out after the filter, and further batches played (`algorithm.filter_groups`). */
  dynamic_sampling: boolean;
  /** The filter saw scores after normalisation (`workbench.compat: ragen`). */
  normalised: boolean;
}

/** What the run began with of what moves the policy; `setting` events change the weights. */
export interface PolicySettings {
  /** Weights of the terms, 0 where a term is off. */
  kl_loss_coef: number;
  kl_coef: number;
  entropy_coeff: number;
  adv_estimator: string;
  clip_ratio_high: number;
}

/** What the run's configuration has of the diagnoses. */
export interface CollapseSettings {
  first_turn: boolean;
  multi_turn: boolean;
  turn_uniform: boolean;
  compute_freq: number;
  /** Only a whole chat can be diagnosed (`agent_proxy.context_window_mode`). */
  context_window_mode: string;
  gradients: boolean;
  gradients_every: number;
  watch: boolean;
  /** Null where the manifest is of another version's making. */
  filter: FilterSettings | null;
  policy: PolicySettings | null;
}

/** Steps that a file of the diagnostics or of the episodes is there for, ascending. */
export interface DiagnosedSteps {
  gradients: number[];
  groups: number[];
}

/** From where on H(Z|X) in nats a token, and the share of ln N, count as high. */
export interface RegimeThresholds {
  entropy: number;
  informationShare: number;
}

export interface CollapseSnapshot {
  run: RunSummary;
  steps: number[];
  /** By metric key (`collapseKeys`), each as long as `steps`; NaN where a line lacks it. */
  series: Record<string, Float64Array>;
  /** Alarms, early stops and changed settings. */
  events: RunEvent[];
  meanings: Record<string, string>;
  settings: CollapseSettings;
  /** As the newest diagnosis has them; null while there is none. */
  thresholds: RegimeThresholds | null;
  diagnosed: DiagnosedSteps;
  /** Steps whose checkpoints are kept, ascending. */
  checkpoints: number[];
}

export const collapseReady: RequestType<null, CollapseSnapshot> = { method: 'collapse/ready' };

/** New lines since the last message; none where only the status or the files changed. */
export const collapseLines: NotificationType<{
  run: RunSummary;
  lines: MetricNumbers[];
  events: RunEvent[];
  thresholds: RegimeThresholds | null;
  diagnosed: DiagnosedSteps;
  checkpoints: number[];
}> = { method: 'collapse/lines' };

/** The matrix of a diagnosed step with its texts; null where the file or the family is not there. */
export const collapseFamilyAt: RequestType<{ step: number; family: string }, CollapseFamily | null> = {
  method: 'collapse/family',
};

export const gradientsAt: RequestType<{ step: number }, GradientAnalysisRecord | null> = {
  method: 'collapse/gradients',
};

/** A prompt group of a training step. */
export interface PromptGroup {
  group_id: number;
  tag: string;
  /** Trained on; null where nobody says. */
  kept: boolean | null;
  /** In the order of members. `id` is null where only the group table is left. */
  episodes: { id: string | null; member: number; score: number; success: boolean | null; tokens: number | null }[];
}

/** The prompt groups of a step, from its episodes, else from the group table (`trainer.log_group_rv_table`); null where there is neither. */
export const groupsAt: RequestType<{ step: number }, PromptGroup[] | null> = { method: 'collapse/groups' };

export type CollapseCommand =
  | { command: 'dashboard' | 'episodes' }
  /** Opens one episode of training. */
  | { command: 'episode'; step: number; id: string }
  /** Opens docs/METRICS.md at a heading's anchor. */
  | { command: 'explain'; anchor: string }
  /** Puts overrides into the clipboard. */
  | { command: 'copy'; text: string };
export const collapseCommand: NotificationType<CollapseCommand> = { method: 'collapse/command' };
