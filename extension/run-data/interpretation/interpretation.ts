// Interprets a run's diagnoses for the user: one sentence on the state of the reasoning, the confidence, other signs of
// trouble, and suggestions. A pure function of the metrics logged up to the selected step; it reads no texts and runs
// no model. The rules of thumb are explained in docs/METRICS.md.
import type { Estimate, PathPoint } from '../collapse-path';
import { fallen } from '../lasting-falls';
import { diagnoseReasoning, type ReasoningDiagnosis } from '../reasoning-diagnosis';
import { enoughPrompts } from '../regimes';
import { formatNumber, formatPercent } from '../../common/numbers';
import { adviceFor, type Advice } from './advice';
import type { Evidence } from './evidence';
import { signsOf, type Sign } from './warning-signs';

export interface Interpretation {
  /** The state of the reasoning as a noun phrase, and as one sentence. Both come from `diagnoseReasoning`. */
  caption: string;
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
/** Interprets the evidence. Deterministic; all numbers in the returned texts are finite. */
export function interpret(evidence: Evidence): Interpretation {
  const diagnosis = diagnoseReasoning(evidence.path);
  const { caption, headline, now, regime, fall } = diagnosis;
  const signs = signsOf(evidence, fall);
  const advice = adviceFor(diagnosis, signs, evidence);
  if (!now || regime === null)
    return { caption, headline, sentence: '', confidence: 'none', why: noRegime(diagnosis), signs, advice };
  return {
    ...{ caption, headline, sentence: sentenceOf(now, diagnosis) },
    ...confidenceOf(evidence.path, now, diagnosis),
    ...{ signs, advice },
  };
}

/** Returns why a diagnosis has no regime. */
function noRegime({ now, state }: ReasoningDiagnosis): string {
  if (!now) return 'no diagnosis of collapse was logged up to this step';
  if (state === 'invalid') return 'the diagnosis is invalid';
  return `${formatPercent(now.thoughts)} of the answers at step ${now.step} have a readable thought`;
}

/**
 * Returns a sentence such as
 * `Mutual information is 1.31 of at most 2.08 nats, retrieval accuracy is 71 % (chance: 13 %); the entropy under one
 * prompt is 0.14 nats per token, and has been under half of its first value (1.69 at step 1) since step 60.`
 */
function sentenceOf(now: PathPoint, { fall, narrowed }: ReasoningDiagnosis): string {
  const found = Number.isFinite(now.retrieval.value) && Number.isFinite(now.chance);
  const parts = [
    `Mutual information is ${formatNumber(now.information.value)} of at most ${formatNumber(now.bound)} nats`,
    ...(found
      ? [`retrieval accuracy is ${formatPercent(now.retrieval.value)} (chance: ${formatPercent(now.chance)})`]
      : []),
  ];
  const narrowing = narrowed
    ? `, and has been under half of its first value (${formatNumber(narrowed.from.value)} at step ${narrowed.from.step}) since step ${narrowed.since} (means of 3 diagnoses)`
    : '';
  const clauses = [
    parts.join(', '),
    `the entropy under one prompt is ${formatNumber(now.entropy.value)} nats per token${narrowing}`,
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
  now: PathPoint,
  { caption, faint }: ReasoningDiagnosis,
): Pick<Interpretation, 'confidence' | 'why'> {
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
  if (faint) doubts.push('the reasoning contains little information about its prompt');
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
  const sure = `“${caption}” has a probability of ${formatPercent(probability)}`;
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
