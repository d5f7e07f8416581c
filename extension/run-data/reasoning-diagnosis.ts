// The diagnosis of a run's reasoning: whether it depends on its prompt, whether it varies, and what it has lost. The
// Collapse page takes caption, headline and advice from this one object, and the terminal takes its caption, so that no
// two of them can disagree. The state refines the regime of the newest diagnosis (regimes.ts) and never contradicts it:
// only the regime decides whether reasoning depends on its prompt and whether it varies. Pure functions.
import { median } from '../common/mean-estimate';
import type { PathPoint } from './collapse-path';
import { informationFall, narrowing, type Fall, type Narrowing, type Onset } from './lasting-falls';
import { enoughThoughts, retrievalOverChance, type Regime } from './regimes';

/** Number of newest diagnoses over which the medians are computed. */
const medianOver = 3;
/**
 * Dependence on the prompt is strong only if one of two values is large enough: the mutual information as a share of
 * ln N is at least `strongShare`, or the retrieval accuracy on a scale from 0 (chance) to 1 (always correct) is at
 * least `foundAgain`.
 */
const strongShare = 0.25;
const foundAgain = 0.5;
/**
 * Limit of ln N, the upper bound of I(X;Z), in nats. A diagnosis with ln N at or above this limit is invalid. No
 * realistic number of prompts N reaches it.
 */
const largestBound = 100;

/**
 * The states, ordered from healthy to collapsed within each regime. `faint` states: the reasoning depends on its
 * prompt, but contains little information about it. The last three states have no regime.
 */
export const reasoningStates = {
  diverse: {
    caption: 'diverse reasoning',
    headline: 'Reasoning differs between prompts and still varies under each of them',
  },
  falling: {
    caption: 'diverse reasoning',
    headline: 'Reasoning still differs between prompts, but less than it did',
  },
  begun: { caption: 'diverse reasoning', headline: 'Reasoning has begun to depend on the prompt' },
  faint: {
    caption: 'diverse reasoning',
    headline: 'Reasoning still depends on the prompt, but less than it did',
  },
  compressed: {
    caption: 'compressed reasoning',
    headline: 'Reasoning still differs between prompts, but under one prompt it hardly varies',
  },
  'faint and narrow': {
    caption: 'compressed reasoning',
    headline: 'Reasoning depends only weakly on the prompt, and under one prompt it hardly varies',
  },
  template: {
    caption: 'template collapse',
    headline: 'Reasoning no longer depends on the prompt: it varies, but hardly differs between prompts',
  },
  'not yet': {
    caption: 'no dependence on the prompt yet',
    headline: 'Reasoning does not depend on the prompt yet',
  },
  'low entropy': {
    caption: 'low-entropy collapse',
    headline: 'Reasoning has become nearly the same text for all prompts',
  },
  never: {
    caption: 'low entropy from the start',
    headline: 'Reasoning has been nearly the same text for all prompts from the start',
  },
  unreadable: {
    caption: 'no regime, because most answers have no readable thought',
    headline: 'The reasoning cannot be judged, because most answers have no readable thought',
  },
  invalid: {
    caption: 'no regime, because the diagnosis is invalid',
    headline: 'The last diagnosis is invalid: its bound ln N does not match any number of prompts',
  },
  undiagnosed: {
    caption: 'no diagnosis up to this step',
    headline: 'It is not known yet whether the reasoning depends on the prompt',
  },
} as const;
export type ReasoningState = keyof typeof reasoningStates;

export interface ReasoningDiagnosis {
  state: ReasoningState;
  /** The state as a noun phrase, for the picture and the terminal. */
  caption: string;
  /** The state as a sentence without its full stop. */
  headline: string;
  /** The newest diagnosis; null if there is none. */
  now: PathPoint | null;
  /** Regime of `now`, and the probability that this regime is correct; null in a state without a regime. */
  regime: Regime | null;
  probability: number | null;
  /** Whether the reasoning depends on its prompt, but contains little information about it. */
  faint: boolean;
  /** Lasting fall of I(X;Z); null if it has not fallen. */
  fall: Fall | null;
  /** Lasting fall of H(Z|X); null if it has not fallen. */
  narrowed: Narrowing | null;
  /** When the reasoning lost its dependence on the prompt; null if it has not lost it. */
  lost: Onset | null;
}

/** Diagnoses the newest point of a path. `path` contains one family's diagnoses up to the selected step. */
export function diagnoseReasoning(path: readonly PathPoint[]): ReasoningDiagnosis {
  const now = path.at(-1) ?? null;
  const valid = now !== null && now.bound > 0 && now.bound < largestBound;
  const fall = valid ? informationFall(path) : null;
  const without = (state: 'undiagnosed' | 'invalid' | 'unreadable'): ReasoningDiagnosis => ({
    ...{ state, ...reasoningStates[state], now, regime: null, probability: null },
    ...{ faint: false, fall, narrowed: null, lost: null },
  });
  if (now === null) return without('undiagnosed');
  if (!valid) return without('invalid');
  if (now.thoughts < enoughThoughts) return without('unreadable');
  const { regime, confidence } = now.judgement;
  const dependent = dependsOnPrompt(regime);
  const faint = dependent && !isStrong(path.slice(-medianOver));
  const lost = dependent ? null : (fall?.onset ?? lossOf(path));
  const state = stateOf(regime, faint, dependent ? fall !== null : lost !== null);
  return {
    ...{ state, ...reasoningStates[state], now, regime, probability: confidence },
    ...{ faint, fall, narrowed: narrowing(path), lost },
  };
}

const dependsOnPrompt = (regime: Regime): boolean =>
  regime === 'diverse reasoning' || regime === 'compressed reasoning';

function isStrong(last: readonly PathPoint[]): boolean {
  const found = median(last.map(({ retrieval, chance }) => retrievalOverChance(retrieval.value, chance)));
  return found >= foundAgain || median(last.map(({ information, bound }) => information.value / bound)) >= strongShare;
}

/**
 * Returns when the dependence ended, if most of the earlier diagnoses found one. This covers short histories, in which
 * a fall of I(X;Z) cannot be measured yet.
 */
function lossOf(path: readonly PathPoint[]): Onset | null {
  const earlier = path.slice(0, -1).map(({ judgement }) => dependsOnPrompt(judgement.regime));
  if (2 * earlier.filter(Boolean).length <= earlier.length) return null;
  const last = earlier.lastIndexOf(true);
  return { fine: path[last].step, began: path[last + 1].step };
}

function stateOf(regime: Regime, faint: boolean, fell: boolean): ReasoningState {
  switch (regime) {
    case 'diverse reasoning':
      if (faint) return fell ? 'faint' : 'begun';
      return fell ? 'falling' : 'diverse';
    case 'compressed reasoning':
      return faint ? 'faint and narrow' : 'compressed';
    case 'template collapse':
      return fell ? 'template' : 'not yet';
    case 'low-entropy collapse':
      return fell ? 'low entropy' : 'never';
  }
}
