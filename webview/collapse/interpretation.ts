// Interprets a run's diagnoses for the user: one sentence on the state of its reasoning, the confidence, other signs,
// and what to try. A pure function of what was logged up to the selected step; it reads no texts and runs no model. It
// distinguishes a policy whose reasoning has come to ignore the prompt from one that has not yet learnt to use it. The
// rules of thumb are explained in docs/METRICS.md.
import type { FilterSettings, PolicySettings } from '../../extension/protocol/collapse-page';
import { alarmRules, boundsOver } from '../../extension/run-data/alarm-rules';
import { median } from '../../extension/common/estimate';
import { enoughPrompts, retrievalOverChance } from '../../extension/run-data/regimes';
import type { SettingChange } from '../../extension/run-data/run-events';
import { formatNumber, formatPercent } from '../shared/format';
import type { Estimate, PathPoint, StepValue } from './run-series';

/** A value of the configuration that was changed while the run trained, from the step after `step` on. */
export type ChangedSetting = SettingChange & { step: number };

/** What holds at the step that is looked at; null where it is not known. */
export interface Circumstances {
  filter: FilterSettings | null;
  policy: PolicySettings | null;
  /** In their order. */
  changes: readonly ChangedSetting[];
  /** Steps whose checkpoints are left, ascending. */
  checkpoints: readonly number[] | null;
}

/** All that the reading is made from; nothing of it lies after the step that is looked at. */
export interface Evidence extends Circumstances {
  path: readonly PathPoint[];
  rewardStd: readonly StepValue[];
  tokenEntropy: readonly StepValue[];
  gradientNorm: readonly StepValue[];
  invalidAnswers: readonly StepValue[];
  /** Share of training episodes that succeed, mean over tags. */
  success: readonly StepValue[];
  /** The same of validations. */
  validation: readonly StepValue[];
  /** Share of turns with a thought (`collapse/valid_thinking_rate`). */
  thinking: readonly StepValue[];
}

/** A heading's anchor in docs/METRICS.md. */
export type Anchor =
  'in-what-order-to-look' | 'the-task' | 'policy' | 'rollout-filter' | 'rollout' | 'collapse' | 'alarms';

export type SignKind = 'validation' | 'echo trap' | 'solved' | 'spike' | 'format' | 'entropy' | 'thoughts' | 'setting';

export interface Sign {
  kind: SignKind;
  text: string;
  anchor: Anchor;
  /** Where it began, to scrub there. */
  step?: number;
  onset?: Onset;
  /** The setting that is suspected. */
  key?: string;
}

/** When something fell: the first step that shows it, and the one before, of which nothing is to be seen yet. */
interface Onset {
  fine: number;
  began: number;
}

type DatedSign = Sign & { step: number; onset: Onset };

export interface Advice {
  text: string;
  anchor: Anchor;
}

export interface Interpretation {
  /** What it looks like, in one sentence. */
  headline: string;
  /** The numbers behind it, in one sentence; empty where there are none. */
  sentence: string;
  confidence: 'none' | 'low' | 'moderate' | 'high';
  /** Why no surer. */
  why: string;
  /** Anything besides that bears on it, the gravest first. */
  signs: Sign[];
  advice: Advice[];
}

/** Diagnoses whose median is taken, and the number that should agree on the regime. */
const medianOver = 3;
const recent = 5;
/**
 * Reasoning says much about its prompt from this share of ln N on, or from this retrieval accuracy on (0 chance, 1
 * certainty).
 */
const strongShare = 0.25;
const foundAgain = 0.5;
/** Probabilities of the regime from which on the confidence has these names. */
const confident = { high: 0.9, moderate: 0.7 } as const;
/** A bound ln N above this is none of any number of prompts. */
const largestBound = 100;
/** A fall for good is one under this share of the best, on means over three (test/experiments). */
const fallen = 0.85;
/** Steps before a fall within which a changed setting may be its cause. */
const suspicious = 10;

/** Reads the evidence. Deterministic; every number in its texts is finite. */
export function interpret(evidence: Evidence): Interpretation {
  const { path } = evidence;
  const now = path.at(-1);
  const assessment = now && now.bound > 0 && now.bound < largestBound ? assess(path) : null;
  const signs = signsOf(evidence, assessment?.fall ?? null);
  if (!assessment) {
    const headline = now
      ? 'The last diagnosis cannot be judged: its bound ln N is not that of any number of prompts'
      : 'Nothing is known yet of whether the reasoning depends on the prompt';
    const why = now ? 'the diagnosis is invalid' : 'no diagnosis of collapse was logged up to this step';
    return { headline, sentence: '', confidence: 'none', why, signs, advice: adviceFor(null, signs, evidence) };
  }
  return {
    headline: headlines[assessment.state],
    sentence: sentenceOf(path, assessment),
    ...confidenceOf(path, assessment),
    signs,
    advice: adviceFor(assessment.state, signs, evidence),
  };
}

/** `faint`: the reasoning depends on its prompt, but says little about it. */
type Dependence = 'clear' | 'faint' | 'none';
type State =
  | 'diverse'
  | 'compressed'
  | 'falling'
  | 'begun'
  | 'faint'
  | 'faint and narrow'
  | 'template'
  | 'not yet'
  | 'low entropy'
  | 'never';

const headlines: Record<State, string> = {
  diverse: 'Reasoning differs between prompts and still varies under each of them',
  compressed: 'Reasoning still differs between prompts, but under one prompt it hardly varies',
  falling: 'Reasoning still differs between prompts, but less than it did',
  begun: 'Reasoning has begun to depend on the prompt',
  faint: 'Reasoning still tells prompts apart, but says less about them than it did',
  'faint and narrow': 'Reasoning still tells prompts apart, but says little about them and hardly varies',
  template: 'Reasoning has come to ignore the prompt: what is written varies, what was asked hardly shows in it',
  'not yet': 'Reasoning does not depend on the prompt yet',
  'low entropy': 'Reasoning has become nearly the same text whatever the prompt',
  never: 'Reasoning is nearly the same text whatever the prompt, and never was otherwise',
};

interface Assessment {
  state: State;
  dependence: Dependence;
  /** Best mean over three diagnoses of the mutual information, where it has fallen from that for good. */
  fall: { from: StepValue; now: number; since: number; onset: Onset } | null;
}

function assess(path: readonly PathPoint[]): Assessment {
  const { regime } = path[path.length - 1].judgement;
  const last = path.slice(-medianOver);
  const found = median(last.map(({ retrieval, chance }) => retrievalOverChance(retrieval.value, chance)));
  const dependent = regime === 'diverse reasoning' || regime === 'compressed reasoning';
  const varied = regime === 'diverse reasoning' || regime === 'template collapse';
  const strong = found >= foundAgain || median(last.map(share)) >= strongShare;
  const dependence = dependent && strong ? 'clear' : dependent || found >= foundAgain ? 'faint' : 'none';
  const fall = informationFall(path);
  return { state: stateOf(dependence, varied, fall !== null), dependence, fall };
}

const informationFall = (path: readonly PathPoint[]): Assessment['fall'] =>
  fallOf(path.map(({ step, information }) => ({ step, value: information.value })));

function stateOf(dependence: Dependence, diverse: boolean, fell: boolean): State {
  switch (dependence) {
    case 'clear':
      return !diverse ? 'compressed' : fell ? 'falling' : 'diverse';
    case 'faint':
      return !diverse ? 'faint and narrow' : fell ? 'faint' : 'begun';
    case 'none':
      if (diverse) return fell ? 'template' : 'not yet';
      return fell ? 'low entropy' : 'never';
  }
}

/**
 * `Mutual information is 1.31 of at most 2.08 nats, retrieval 71 % against 13 % by chance; within a prompt it narrowed
 * since step 60.`
 */
function sentenceOf(path: readonly PathPoint[], { fall }: Assessment): string {
  const now = path[path.length - 1];
  const found = Number.isFinite(now.retrieval.value) && Number.isFinite(now.chance);
  const parts = [
    `Mutual information is ${formatNumber(now.information.value)} of at most ${formatNumber(now.bound)} nats`,
    ...(found
      ? [`retrieval finds ${formatPercent(now.retrieval.value)} against ${formatPercent(now.chance)} by chance`]
      : []),
  ];
  const narrowed = narrowing(path);
  const clauses = [
    parts.join(', '),
    narrowed
      ? `under one prompt it narrowed since step ${narrowed.since}, from ${formatNumber(narrowed.from)} to ${formatNumber(now.entropy.value)} nats a token`
      : `under one prompt it has ${formatNumber(now.entropy.value)} nats a token`,
    ...(fall
      ? [
          `the information has been under ${Math.round(100 * fallen)} % of its best since step ${fall.since} (${formatNumber(fall.from.value)} around step ${fall.from.step}, ${formatNumber(fall.now)} now, each the mean of 3 diagnoses)`,
        ]
      : []),
  ];
  return `${clauses.join('; ')}.`;
}

/** From the calibrated probability that the regime is right; few diagnoses or prompts lower it. */
function confidenceOf(
  path: readonly PathPoint[],
  { dependence }: Assessment,
): Pick<Interpretation, 'confidence' | 'why'> {
  const now = path[path.length - 1];
  const { regime, confidence: probability, thresholds } = now.judgement;
  const last = path.slice(-recent);
  const prompts = Math.round(Math.exp(now.bound));
  const severe: string[] = [];
  if (path.length < 3) severe.push(path.length === 1 ? 'this is the first diagnosis' : 'there are two diagnoses');
  if (prompts < enoughPrompts) severe.push(`only ${prompts} prompts were compared`);
  const doubts: string[] = [];
  const odd = last.filter(point => point.judgement.regime !== regime).length;
  if (odd > 0)
    doubts.push(`${odd} of the last ${last.length} diagnoses ${odd === 1 ? 'lies' : 'lie'} in another regime`);
  if (dependence === 'faint') doubts.push('the reasoning says little about its prompt');
  const axes: [string, Estimate, number][] = [
    ['mutual information', now.information, thresholds.information],
    ['H(Z|X)', now.entropy, thresholds.entropy],
  ];
  for (const [name, { low, high }, bound] of axes) {
    if (!Number.isFinite(low) || !Number.isFinite(high)) severe.push(`${name} has no interval`);
    else if (low <= bound && high >= bound)
      doubts.push(
        `the interval of ${name} (${formatNumber(low)} to ${formatNumber(high)}) contains its threshold ${formatNumber(bound)}`,
      );
  }
  const sure = `“${regime}” has a probability of ${formatPercent(probability)}`;
  const high = probability >= confident.high && severe.length + doubts.length === 0 && path.length >= recent;
  const low = probability < confident.moderate || severe.length > 0;
  const agree = path.length < recent ? `all ${path.length} diagnoses agree` : `the last ${recent} diagnoses agree`;
  const reasons = [...severe, ...doubts];
  return {
    confidence: low ? 'low' : high ? 'high' : 'moderate',
    why: [sure, ...(reasons.length > 0 ? reasons : [`${agree} over ${formatNumber(prompts)} prompts`])].join('; '),
  };
}

function signsOf(evidence: Evidence, information: Assessment['fall']): Sign[] {
  const dated = [validationFall(evidence), rewardStdFall(evidence), gradientSpike(evidence), entropyFall(evidence)];
  const falls = dated.filter(sign => sign !== null);
  const onsets = [...falls.map(({ onset }) => onset), ...(information ? [information.onset] : [])];
  const changedSettings = recentChanges(evidence, onsets);
  const [validation, rewardStd, spike, entropy] = dated;
  return [
    validation,
    ...changedSettings,
    rewardStd,
    spike,
    invalidAnswers(evidence),
    entropy,
    fewThoughts(evidence),
  ].filter(sign => sign !== null);
}

/** Settings that were changed shortly before something fell or spiked. */
function recentChanges({ changes }: Evidence, onsets: readonly Onset[]): Sign[] {
  const before = changes.filter(({ step }) =>
    onsets.some(({ fine, began }) => step >= fine - suspicious && step < began),
  );
  return before.map(({ key, from, to, step }) => ({
    kind: 'setting',
    text: `${key} was changed from ${formatNumber(from)} to ${formatNumber(to)} after step ${step}, shortly before what fell here: it may be the cause`,
    anchor: 'policy',
    step,
    key,
  }));
}

function validationFall({ validation }: Evidence): DatedSign | null {
  const fall = fallOf(validation);
  if (!fall) return null;
  const text = `Validation success fell from ${formatPercent(fall.from.value)} (around step ${fall.from.step}) to ${formatPercent(fall.now)}, each the mean of 3 validations`;
  return { kind: 'validation', text, anchor: 'the-task', step: fall.since, onset: fall.onset };
}

/** The Echo Trap's first sign; of a solved task it is none. */
function rewardStdFall({ rewardStd, success }: Evidence): DatedSign | null {
  const fall = fallUnderFirst(rewardStd, 0.5);
  if (!fall) return null;
  const solved = tail(success, 10) >= 0.9;
  const meaning = solved
    ? 'with nearly all episodes solved it has to'
    : 'episodes of a group come to score alike, and there is less to learn from (the Echo Trap’s first sign)';
  const text = `In-group reward std has been under half of its first ten steps’ mean since step ${fall.since} (${formatNumber(fall.first)}, now ${formatNumber(fall.now)}, the mean of 10 steps): ${meaning}`;
  return { kind: solved ? 'solved' : 'echo trap', text, anchor: 'rollout-filter', step: fall.since, onset: fall.onset };
}

function gradientSpike({ gradientNorm }: Evidence): DatedSign | null {
  const last = gradientNorm.slice(-60); // the last 20, with what they are compared with
  const values = last.map(({ value }) => value);
  const bounds = boundsOver(alarmRules.gradient_spike, values);
  const at = values.findLastIndex((value, i) => i >= values.length - 20 && value > bounds[i]);
  if (at < 0) return null;
  const { step, value } = last[at];
  return {
    kind: 'spike',
    text: `The gradient’s norm spiked at step ${step} (${formatNumber(value)}, ten times the usual is ${formatNumber(bounds[at])})`,
    anchor: 'policy',
    step,
    onset: { fine: last[at - 1].step, began: step },
  };
}

function invalidAnswers({ invalidAnswers: shares }: Evidence): Sign | null {
  const now = tail(shares, 3);
  if (!(now > 0.5)) return null;
  const text = `${formatPercent(now)} of the answers (mean of 3 steps) hold no valid action: the format is being lost`;
  return { kind: 'format', text, anchor: 'rollout' };
}

function entropyFall({ tokenEntropy }: Evidence): DatedSign | null {
  const fall = fallUnderFirst(tokenEntropy, 0.25);
  if (!fall) return null;
  const text = `Token entropy has been under a quarter of its first ten steps’ mean since step ${fall.since} (${formatNumber(fall.first)}, now ${formatNumber(fall.now)} nats, the mean of 10 steps): the policy is sure of nearly every word`;
  return { kind: 'entropy', text, anchor: 'policy', step: fall.since, onset: fall.onset };
}

function fewThoughts({ thinking }: Evidence): Sign | null {
  const now = thinking.at(-1);
  if (!now || now.value >= 0.9) return null;
  return {
    kind: 'thoughts',
    text: `Only ${formatPercent(now.value)} of the turns hold a thought: the diagnosis speaks of these alone`,
    anchor: 'collapse',
  };
}

const keepsAll = (filter: FilterSettings): boolean =>
  filter.strategy === 'top_p' && filter.value >= 1 && filter.include_zero;

const filterMore = (filter: FilterSettings | null): Advice => ({
  anchor: 'rollout-filter',
  text:
    filter && keepsAll(filter)
      ? 'Train on the groups that differ most in score alone: rollout_filter_value 0.9 (top_p, linear); the filter keeps all groups now'
      : 'Play more prompts (env_groups) or filter more strictly: what is trained on should differ in score within its group',
});

/** What to try by each sign. */
const bySign: Record<SignKind, (evidence: Evidence, sign: Sign) => Advice[]> = {
  validation: evidence => [goBack(evidence, fallOf(evidence.validation), 'what came after it made the policy worse')],
  setting: (_, { key }) => [{ anchor: 'policy', text: `Set ${key} back and see whether it recovers` }],
  'echo trap': ({ filter, policy }) => {
    const means = [
      policy?.adv_estimator !== 'gae' && 'a critic (GAE) in place of group means',
      !(policy && policy.clip_ratio_high >= 0.28) && 'clip_ratio_high 0.28',
      !(policy && klIsOff(policy)) && 'no KL term',
    ].filter(Boolean);
    const more: Advice = { anchor: 'in-what-order-to-look', text: `Against the Echo Trap: ${means.join(', ')}` };
    return [filterMore(filter), ...(means.length > 0 ? [more] : [])];
  },
  solved: () => [],
  spike: () => [
    { anchor: 'policy', text: 'Lower the learning rate or grad_clip; in published runs none recovered after a spike' },
  ],
  format: () => [
    { anchor: 'rollout', text: 'Lower the learning rate, keep format_penalty at −0.1 and see whether answers are cut' },
  ],
  entropy: () => [],
  thoughts: () => [
    { anchor: 'collapse', text: 'Give thoughts room (response_length) and see that answers without one are penalised' },
  ],
};

const klIsOff = ({ kl_loss_coef, kl_coef }: PolicySettings): boolean => kl_loss_coef === 0 && kl_coef === 0;

/** The terms that move the policy where scores do not differ; those that are off are not named, none where all are. */
function termsOf({ policy }: Evidence): string {
  const terms = [
    !(policy && klIsOff(policy)) && 'KL',
    (policy === null || policy.entropy_coeff !== 0) && 'entropy',
  ].filter(Boolean);
  return terms.length === 0 ? '' : `the ${terms.join(' and ')} term${terms.length === 1 ? '' : 's'}`;
}

function lessTerms(evidence: Evidence): Advice[] {
  const terms = termsOf(evidence);
  const text = `Lessen ${terms}: where scores do not differ, ${terms.endsWith('s') ? 'they alone move' : 'it alone moves'} the policy`;
  return terms === '' ? [] : [{ anchor: 'collapse', text }];
}

function watchOn(evidence: Evidence): Advice {
  const terms = termsOf(evidence);
  const text = `Watch mi_zscore_ema: if it goes on falling, filter groups${terms && ` and lessen ${terms}`}`;
  return { anchor: 'collapse', text };
}

/** Back to the newest checkpoint of before a fall, where one is left. */
function goBack({ checkpoints }: Evidence, fall: Assessment['fall'], why: string): Advice {
  const before = checkpoints?.filter(step => fall === null || step < fall.onset.began) ?? [];
  const last = before.at(-1);
  const when = fall ? `of before step ${fall.onset.began}` : 'of before';
  const text =
    last !== undefined
      ? `Resume from the checkpoint of step ${last}, the newest ${fall ? 'of before the fall' : 'there is'}: ${why}`
      : checkpoints
        ? `No checkpoint ${when} is left to resume from: let the next run keep more of them (workbench.keep_checkpoints)`
        : `Resume from a checkpoint ${when}, where one is kept: ${why}`;
  return { anchor: 'the-task', text };
}

const waitForMore: Advice = { anchor: 'collapse', text: 'Wait for more diagnoses: every run begins here' };

/** What to try by what the reasoning looks like. */
const byState: Record<State, (evidence: Evidence) => Advice[]> = {
  diverse: () => [],
  begun: ({ path }) => (path.length < 3 ? [waitForMore] : []),
  falling: evidence => [watchOn(evidence)],
  compressed: ({ validation, success }) => [
    {
      anchor: 'policy',
      text: fallOf(validation.length > 0 ? validation : success)
        ? 'Raise temperature or entropy_coeff: success has fallen while answers to one prompt hardly vary'
        : 'While success rises, leave it: sure and informed is what a solved task looks like; else raise temperature or entropy_coeff',
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
          text: 'If success does not rise either, read episodes: thoughts may not speak of the state',
        },
  ],
  'low entropy': evidence => [
    goBack(evidence, informationFall(evidence.path), 'reasoning told prompts apart then'),
    { anchor: 'policy', text: 'Train on with a lower learning rate and a higher entropy_coeff or temperature' },
  ],
  never: () => [
    { anchor: 'policy', text: 'Raise the rollout’s temperature, and read episodes: the model may not think at all' },
  ],
};

function adviceFor(state: State | null, signs: readonly Sign[], evidence: Evidence): Advice[] {
  const all = [...signs.flatMap(sign => bySign[sign.kind](evidence, sign)), ...(state ? byState[state](evidence) : [])];
  const advice = all.filter(({ text }, i) => all.findIndex(other => other.text === text) === i);
  if (advice.length > 0) return advice;
  if (state === null) return [{ anchor: 'collapse', text: 'Have the run diagnose its reasoning (collapse_detection)' }];
  return [{ anchor: 'collapse', text: 'Nothing to change: keep an eye on mi_zscore_ema, which falls first' }];
}

const share = ({ information, bound }: PathPoint): number => information.value / bound;

/** Means over `window` neighbouring values, each at the last one's step. */
const smoothed = (points: readonly StepValue[], window: number): StepValue[] =>
  points.slice(window - 1).map(({ step }, i) => ({ step, value: mean(points.slice(i, i + window)) }));

/**
 * The last stretch over which means of three stay under `fallen` of the best before; null where the newest is not in
 * one.
 */
function fallOf(points: readonly StepValue[]): Assessment['fall'] {
  const means = smoothed(points, 3);
  if (means.length < 4) return null;
  let best = means[0];
  let since: number | null = null;
  let from = best;
  means.forEach((point, i) => {
    if (point.value > best.value) best = point;
    if (best.value > 0 && point.value < fallen * best.value) {
      since ??= i;
      from = best;
    } else since = null;
  });
  if (since === null) return null;
  const now = means[means.length - 1].value;
  return { from, now, since: means[since].step, onset: onsetOf(points, since, fallen * from.value) };
}

/** Since when means of ten stay under a share of the first ten's; null where they do not, or there are too few. */
function fallUnderFirst(
  points: readonly StepValue[],
  part: number,
): { first: number; now: number; since: number; onset: Onset } | null {
  const means = smoothed(points, 10);
  if (means.length < 2 || !(means[0].value > 0)) return null;
  const over = means.findLastIndex(({ value }) => !(value < part * means[0].value));
  const since = means[over + 1];
  if (!since) return null;
  const [{ value: first }, { value: now }] = [means[0], means[means.length - 1]];
  return { first, now, since: since.step, onset: onsetOf(points, over + 1, part * first) };
}

/**
 * A mean stands at its last value's step: of the values from `first` on that it is made of, the first under the bound.
 */
function onsetOf(points: readonly StepValue[], first: number, bound: number): Onset {
  const at = points.findIndex(({ value }, i) => i >= first && value < bound);
  const began = at < 0 ? first : at;
  return { fine: points[Math.max(0, began - 1)].step, began: points[began].step };
}

/** Since when H(Z|X), as means of three, stays under half of where it began. */
function narrowing(path: readonly PathPoint[]): { since: number; from: number } | null {
  const means = smoothed(
    path.map(({ step, entropy }) => ({ step, value: entropy.value })),
    3,
  );
  const from = path[0].entropy.value;
  if (means.length === 0 || !(from > 0)) return null;
  const over = means.findLastIndex(({ value }) => !(value < from / 2));
  const since = means[over + 1];
  return since ? { since: since.step, from } : null;
}

const mean = (points: readonly StepValue[]): number =>
  points.reduce((sum, { value }) => sum + value, 0) / points.length;

/** Mean of the last values; NaN of none. */
const tail = (points: readonly StepValue[], count: number): number => mean(points.slice(-count));
