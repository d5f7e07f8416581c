// Suggestions for the user, derived from the signs in a run's metrics and from the state of its reasoning. Each
// suggestion links to the section of docs/METRICS.md that explains it.
import type { FilterSettings, PolicySettings } from '../collapse-settings';
import { fallOf, type Onset } from '../lasting-falls';
import type { ReasoningDiagnosis, ReasoningState } from '../reasoning-diagnosis';
import type { Evidence } from './evidence';
import type { Anchor, Sign, SignKind } from './warning-signs';

export interface Advice {
  text: string;
  anchor: Anchor;
}

const keepsAll = (filter: FilterSettings): boolean =>
  filter.strategy === 'top_p' && filter.value >= 1 && filter.include_zero;

const filterMore = (filter: FilterSettings | null): Advice => ({
  anchor: 'rollout-filter',
  text:
    filter && keepsAll(filter)
      ? 'The filter keeps all groups. To train only on the groups whose scores differ most, set rollout_filter_value to 0.9 (with the strategy top_p and the mode linear)'
      : 'Use more prompts (env_groups) or a stricter filter, so that scores differ within each trained group',
});

/** Suggestions for each sign. */
const bySign: Record<SignKind, (evidence: Evidence, sign: Sign) => Advice[]> = {
  validation: evidence => [
    goBack(evidence, fallOf(evidence.validation)?.onset ?? null, 'later updates made the policy worse'),
  ],
  setting: (_, { key }) => [
    { anchor: 'policy', text: `Reset ${key} to its earlier value and check whether the metrics recover` },
  ],
  'echo trap': ({ filter, policy }) => {
    const means = [
      policy?.adv_estimator !== 'gae' && 'a critic (GAE) instead of group means',
      !(policy && policy.clip_ratio_high >= 0.28) && 'clip_ratio_high 0.28',
      !(policy && klIsOff(policy)) && 'no KL term',
    ].filter(Boolean);
    const more: Advice = {
      anchor: 'in-what-order-to-look',
      text: `Settings that counter the Echo Trap: ${means.join(', ')}`,
    };
    return [filterMore(filter), ...(means.length > 0 ? [more] : [])];
  },
  solved: () => [],
  spike: () => [
    { anchor: 'policy', text: 'Lower the learning rate or grad_clip; no published run recovered after a spike' },
  ],
  format: () => [
    {
      anchor: 'rollout',
      text: 'Lower the learning rate, keep format_penalty at −0.1 and check whether answers are truncated',
    },
  ],
  entropy: () => [],
  thoughts: () => [
    { anchor: 'collapse', text: 'Increase response_length, and check that answers without a thought are penalised' },
  ],
};

const klIsOff = ({ kl_loss_coef, kl_coef }: PolicySettings): boolean => kl_loss_coef === 0 && kl_coef === 0;

/**
 * Returns a phrase with the names of the enabled loss terms (KL, entropy), such as `the KL term`; empty if both are
 * disabled. These terms change the policy even if scores do not differ.
 */
function termsOf({ policy }: Evidence): string {
  const terms = [
    !(policy && klIsOff(policy)) && 'KL',
    (policy === null || policy.entropy_coeff !== 0) && 'entropy',
  ].filter(Boolean);
  return terms.length === 0 ? '' : `the ${terms.join(' and ')} term${terms.length === 1 ? '' : 's'}`;
}

function lessTerms(evidence: Evidence): Advice[] {
  const terms = termsOf(evidence);
  const text = `Reduce ${terms}: if scores do not differ, only ${terms.endsWith('s') ? 'these terms change' : 'this term changes'} the policy`;
  return terms === '' ? [] : [{ anchor: 'collapse', text }];
}

function watchOn(evidence: Evidence): Advice {
  const terms = termsOf(evidence);
  const text = `Watch mi_zscore_ema: if it keeps falling, filter groups more strictly${terms && ` and reduce ${terms}`}`;
  return { anchor: 'collapse', text };
}

/**
 * Suggests resuming from the newest checkpoint that was saved before a fall. If no such checkpoint is left, suggests
 * the setting that keeps more checkpoints.
 */
function goBack({ checkpoints }: Evidence, fall: Onset | null, why: string): Advice {
  const before = checkpoints?.filter(step => fall === null || step < fall.began) ?? [];
  const last = before.at(-1);
  const when = fall ? `before step ${fall.began}` : 'before the fall';
  const text =
    last !== undefined
      ? `Resume from the checkpoint of step ${last} (the newest ${fall ? 'before the fall' : 'available'}), because ${why}`
      : checkpoints
        ? `No checkpoint ${when} is left to resume from: keep more checkpoints in the next run (workbench.keep_checkpoints)`
        : `Resume from a checkpoint ${when}, if one still exists, because ${why}`;
  return { anchor: 'the-task', text };
}

const waitForMore: Advice = { anchor: 'collapse', text: 'Wait for more diagnoses: every run starts in this state' };

/** Signs that do not call for a change of settings. */
const harmless: readonly SignKind[] = ['solved', 'entropy'];

type StateAdvice = (evidence: Evidence, diagnosis: ReasoningDiagnosis, signs: readonly Sign[]) => Advice[];

/** Suggestions for each state of the reasoning. */
const byState: Record<ReasoningState, StateAdvice> = {
  diverse: () => [],
  begun: ({ path }) => (path.length < 3 ? [waitForMore] : []),
  falling: evidence => [watchOn(evidence)],
  compressed: ({ validation, success }, _, signs) => [
    {
      anchor: 'policy',
      text: fallOf(validation.length > 0 ? validation : success)
        ? 'Raise temperature or entropy_coeff: success has fallen while answers to one prompt hardly vary'
        : signs.some(({ kind }) => !harmless.includes(kind))
          ? 'Raise temperature or entropy_coeff, because answers to one prompt hardly vary'
          : 'While success rises, change nothing: a solved task has low entropy and high mutual information. Otherwise raise temperature or entropy_coeff',
    },
  ],
  faint: evidence => [filterMore(evidence.filter), watchOn(evidence)],
  'faint and narrow': ({ filter }) => [
    filterMore(filter),
    { anchor: 'policy', text: 'Raise temperature or entropy_coeff, with a lower learning rate' },
  ],
  template: evidence => [filterMore(evidence.filter), ...lessTerms(evidence)],
  'not yet': ({ path }) => [
    path.length < 3
      ? waitForMore
      : {
          anchor: 'collapse',
          text: 'If success does not rise either, read episodes and check whether the thoughts mention the state',
        },
  ],
  'low entropy': (evidence, { lost }) => [
    goBack(evidence, lost, 'the reasoning still differed between prompts then'),
    {
      anchor: 'policy',
      text: 'Continue training with a lower learning rate and a higher entropy_coeff or temperature',
    },
  ],
  never: () => [
    {
      anchor: 'policy',
      text: 'Raise the rollout’s temperature, and read episodes to check whether the model writes thoughts',
    },
  ],
  unreadable: () => [
    {
      anchor: 'rollout',
      text: 'Read episodes and check how the answers break the format: a regime is shown again when at least half of the answers have a readable thought',
    },
  ],
  invalid: () => [{ anchor: 'collapse', text: 'Select another step or another kind of pairs' }],
  undiagnosed: ({ missing }) => [
    {
      anchor: 'collapse',
      text:
        missing === null
          ? 'Wait for the first diagnosis, or enable the diagnosis of the reasoning (collapse_detection) if it is off'
          : missing.diagnose
            ? 'Score the stored rollouts under a model (ragen diagnose)'
            : missing.override === undefined
              ? 'Wait for the first diagnosis: this run diagnoses its reasoning'
              : `Enable the diagnosis of the reasoning in the next run (${missing.override})`,
    },
  ],
};

/** Returns all suggestions without duplicates; there is always at least one. */
export function adviceFor(diagnosis: ReasoningDiagnosis, signs: readonly Sign[], evidence: Evidence): Advice[] {
  const all = [
    ...signs.flatMap(sign => bySign[sign.kind](evidence, sign)),
    ...byState[diagnosis.state](evidence, diagnosis, signs),
  ];
  const advice = all.filter(({ text }, i) => all.findIndex(other => other.text === text) === i);
  if (advice.length > 0) return advice;
  return [{ anchor: 'collapse', text: 'Change nothing, but watch mi_zscore_ema, which falls before success does' }];
}
