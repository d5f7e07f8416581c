// Signs of trouble in the metrics that are not part of the diagnosis: falls, spikes, many invalid answers, few
// thoughts, and settings changed shortly before a fall or a spike. The rules of thumb are explained in docs/METRICS.md.
import { alarmRules, boundsOver } from '../alarm-rules';
import { fallOf, fallUnderFirst, tail, type Fall, type Onset } from '../lasting-falls';
import { formatNumber, formatPercent } from '../../common/numbers';
import type { Evidence } from './evidence';

/** Anchor of a heading in docs/METRICS.md. */
export type Anchor =
  'in-what-order-to-look' | 'the-task' | 'policy' | 'rollout-filter' | 'rollout' | 'collapse' | 'alarms';

export type SignKind = 'validation' | 'echo trap' | 'solved' | 'spike' | 'format' | 'entropy' | 'thoughts' | 'setting';

export interface Sign {
  kind: SignKind;
  text: string;
  anchor: Anchor;
  /** Step at which the sign began. A click on the sign selects this step. */
  step?: number;
  onset?: Onset;
  /** Key of the changed setting that may be the cause. */
  key?: string;
}

type DatedSign = Sign & { step: number; onset: Onset };

/** A setting that was changed within this number of steps before a fall or a spike is reported as a possible cause. */
const suspicious = 10;

/**
 * Returns the signs, most severe first. `information` is the fall of the mutual information; it is null if the mutual
 * information has not fallen.
 */
export function signsOf(evidence: Evidence, information: Fall | null): Sign[] {
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

/** Returns a sign for each setting that was changed shortly before a fall or a spike began. */
function recentChanges({ changes }: Evidence, onsets: readonly Onset[]): Sign[] {
  const before = changes.filter(({ step }) =>
    onsets.some(({ fine, began }) => step >= fine - suspicious && step < began),
  );
  return before.map(({ key, from, to, step }) => ({
    kind: 'setting',
    text: `${key} was changed from ${formatNumber(from)} to ${formatNumber(to)} after step ${step}, shortly before a fall or a spike: this change may be the cause`,
    anchor: 'policy',
    step,
    key,
  }));
}

function validationFall({ validation }: Evidence): DatedSign | null {
  const fall = fallOf(validation);
  if (!fall) return null;
  const text = `Validation success fell from ${formatPercent(fall.from.value)} (around step ${fall.from.step}) to ${formatPercent(fall.now)} (means of 3 validations)`;
  return { kind: 'validation', text, anchor: 'the-task', step: fall.since, onset: fall.onset };
}

/**
 * Returns a sign if the in-group reward std has fallen. Such a fall is the first sign of an Echo Trap. If at least 90 %
 * of the training episodes succeed, the fall is expected and the sign is `solved`.
 */
function rewardStdFall({ rewardStd, success }: Evidence): DatedSign | null {
  const fall = fallUnderFirst(rewardStd, 0.5);
  if (!fall) return null;
  const solved = tail(success, 10) >= 0.9;
  const meaning = solved
    ? 'this is expected, because nearly all episodes are solved'
    : 'episodes of a group get similar scores, which leaves less to learn from (first sign of the Echo Trap)';
  const text = `In-group reward std has been under half of its initial value since step ${fall.since} (initially ${formatNumber(fall.first)}, now ${formatNumber(fall.now)}, means of 10 steps): ${meaning}`;
  return { kind: solved ? 'solved' : 'echo trap', text, anchor: 'rollout-filter', step: fall.since, onset: fall.onset };
}

function gradientSpike({ gradientNorm }: Evidence): DatedSign | null {
  const last = gradientNorm.slice(-60); // the last 20 norms, and 40 earlier norms for the bounds
  const values = last.map(({ value }) => value);
  const bounds = boundsOver(alarmRules.gradient_spike, values);
  const at = values.findLastIndex((value, i) => i >= values.length - 20 && value > bounds[i]);
  if (at < 0) return null;
  const { step, value } = last[at];
  return {
    kind: 'spike',
    text: `The gradient norm spiked at step ${step}: it was ${formatNumber(value)}, more than ten times the usual norm (bound ${formatNumber(bounds[at])})`,
    anchor: 'policy',
    step,
    onset: { fine: last[at - 1].step, began: step },
  };
}

function invalidAnswers({ invalidAnswers: shares }: Evidence): Sign | null {
  const now = tail(shares, 3);
  if (!(now > 0.5)) return null;
  const text = `${formatPercent(now)} of the answers (mean of 3 steps) contain no valid action: the model is unlearning the answer format`;
  return { kind: 'format', text, anchor: 'rollout' };
}

function entropyFall({ tokenEntropy }: Evidence): DatedSign | null {
  const fall = fallUnderFirst(tokenEntropy, 0.25);
  if (!fall) return null;
  const text = `Token entropy has been under a quarter of its initial value since step ${fall.since} (initially ${formatNumber(fall.first)}, now ${formatNumber(fall.now)} nats, means of 10 steps): the policy is nearly certain of every token`;
  return { kind: 'entropy', text, anchor: 'policy', step: fall.since, onset: fall.onset };
}

function fewThoughts({ thinking }: Evidence): Sign | null {
  const now = thinking.at(-1);
  if (!now || now.value >= 0.9) return null;
  return {
    kind: 'thoughts',
    text: `Only ${formatPercent(now.value)} of the turns contain a thought: the diagnosis covers only these turns`,
    anchor: 'collapse',
  };
}
