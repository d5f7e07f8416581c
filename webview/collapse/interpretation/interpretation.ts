// Interprets a run's diagnoses for the user: one sentence on the state of the reasoning, the confidence, other signs of
// trouble, and suggestions. A pure function of the metrics logged up to the selected step; it reads no texts and runs
// no model. The rules of thumb are explained in docs/METRICS.md.
import { enoughPrompts, enoughThoughts } from '../../../extension/run-data/regimes';
import { formatNumber, formatPercent } from '../../shared/format';
import { adviceFor, type Advice } from './advice';
import { assess, type Assessment, type ReasoningState } from './assessment';
import type { Evidence } from './evidence';
import type { Estimate, PathPoint } from '../trends/run-series';
import { signsOf, type Sign } from './warning-signs';
import { fallen, narrowing } from '../trends/lasting-falls';

export interface Interpretation {
  /** The state of the reasoning in one sentence. */
  headline: string;
  /** The numbers that support the headline, in one sentence; empty without a valid diagnosis. */
  sentence: string;
  confidence: 'none' | 'low' | 'moderate' | 'high';
  /** Reasons for the confidence, including reasons that lower it. */
  why: string;
  /** Other signs of trouble in the metrics, with the most severe sign first. */
  signs: Sign[];
  advice: Advice[];
}

/** High confidence requires that this many of the latest diagnoses all lie in the same regime. */
const recent = 5;
/** Minimum probability of the regime for each level of confidence. */
const confident = { high: 0.9, moderate: 0.7 } as const;
/**
 * Limit of ln N, the upper bound of I(X;Z), in nats. A diagnosis with ln N at or above this limit is invalid. No
 * realistic number of prompts N reaches it.
 */
const largestBound = 100;

/** Interprets the evidence. Deterministic; all numbers in the returned texts are finite. */
export function interpret(evidence: Evidence): Interpretation {
  const { path } = evidence;
  const now = path.at(-1);
  const assessment = now && now.bound > 0 && now.bound < largestBound ? assess(path) : null;
  const signs = signsOf(evidence, assessment?.fall ?? null);
  if (!assessment) {
    const headline = now
      ? 'The last diagnosis is invalid: its bound ln N does not match any number of prompts'
      : 'It is not known yet whether the reasoning depends on the prompt';
    const why = now ? 'the diagnosis is invalid' : 'no diagnosis of collapse was logged up to this step';
    return { headline, sentence: '', confidence: 'none', why, signs, advice: adviceFor(null, signs, evidence) };
  }
  if (now && now.thoughts < enoughThoughts) {
    const headline = 'The reasoning cannot be judged, because most answers have no readable thought';
    const why = `${formatPercent(now.thoughts)} of the answers at step ${now.step} have a readable thought`;
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

const headlines: Record<ReasoningState, string> = {
  diverse: 'Reasoning differs between prompts and still varies under each of them',
  compressed: 'Reasoning still differs between prompts, but under one prompt it hardly varies',
  falling: 'Reasoning still differs between prompts, but less than it did',
  begun: 'Reasoning has begun to depend on the prompt',
  faint: 'Reasoning still depends on the prompt, but less than it did',
  'faint and narrow': 'Reasoning depends only weakly on the prompt, and under one prompt it hardly varies',
  template: 'Reasoning no longer depends on the prompt: it varies, but hardly differs between prompts',
  'not yet': 'Reasoning does not depend on the prompt yet',
  'low entropy': 'Reasoning has become nearly the same text for all prompts',
  never: 'Reasoning has been nearly the same text for all prompts from the start',
};

/**
 * Returns a sentence such as
 * `Mutual information is 1.31 of at most 2.08 nats, retrieval accuracy is 71 % (chance: 13 %); the entropy under one
 * prompt has fallen since step 60, from 1.69 to 0.14 nats per token.`
 */
function sentenceOf(path: readonly PathPoint[], { fall }: Assessment): string {
  const now = path[path.length - 1];
  const found = Number.isFinite(now.retrieval.value) && Number.isFinite(now.chance);
  const parts = [
    `Mutual information is ${formatNumber(now.information.value)} of at most ${formatNumber(now.bound)} nats`,
    ...(found
      ? [`retrieval accuracy is ${formatPercent(now.retrieval.value)} (chance: ${formatPercent(now.chance)})`]
      : []),
  ];
  const narrowed = narrowing(path);
  const clauses = [
    parts.join(', '),
    narrowed
      ? `the entropy under one prompt has fallen since step ${narrowed.since}, from ${formatNumber(narrowed.from)} to ${formatNumber(now.entropy.value)} nats per token`
      : `the entropy under one prompt is ${formatNumber(now.entropy.value)} nats per token`,
    ...(fall
      ? [
          `mutual information has been under ${Math.round(100 * fallen)} % of its best value since step ${fall.since} (best ${formatNumber(fall.from.value)} around step ${fall.from.step}, now ${formatNumber(fall.now)}, means of 3 diagnoses)`,
        ]
      : []),
  ];
  return `${clauses.join('; ')}.`;
}

/**
 * Derives the confidence from the calibrated probability of the regime. If there are few diagnoses or few prompts, the
 * confidence is low. If diagnoses contradict each other or intervals are wide, the confidence is at most moderate.
 */
function confidenceOf(
  path: readonly PathPoint[],
  { dependence }: Assessment,
): Pick<Interpretation, 'confidence' | 'why'> {
  const now = path[path.length - 1];
  const { regime, confidence: probability, thresholds } = now.judgement;
  const last = path.slice(-recent);
  const prompts = Math.round(Math.exp(now.bound));
  const severe: string[] = [];
  if (path.length < 3) severe.push(path.length === 1 ? 'this is the first diagnosis' : 'there are only two diagnoses');
  if (prompts < enoughPrompts) severe.push(`only ${prompts} prompts were compared`);
  const doubts: string[] = [];
  const odd = last.filter(point => point.judgement.regime !== regime).length;
  if (odd > 0)
    doubts.push(`${odd} of the last ${last.length} diagnoses ${odd === 1 ? 'lies' : 'lie'} in another regime`);
  if (dependence === 'faint') doubts.push('the reasoning contains little information about its prompt');
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
    why: [sure, ...(reasons.length > 0 ? reasons : [agree, `${formatNumber(prompts)} prompts were compared`])].join(
      '; ',
    ),
  };
}
