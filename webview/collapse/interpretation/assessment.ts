// Assesses from a run's diagnoses how strongly the reasoning depends on its prompt, how much the reasoning varies, and
// whether the mutual information of prompt and reasoning has fallen. Reasoning that does not depend on its prompt has
// two possible causes. If the mutual information has fallen, the policy no longer uses the prompt. If the mutual
// information has not fallen, the policy has not yet learnt to use the prompt.
import { median } from '../../../extension/common/mean-estimate';
import { retrievalOverChance } from '../../../extension/run-data/regimes';
import type { PathPoint } from '../trends/run-series';
import { informationFall, type Fall } from '../trends/lasting-falls';

/** Number of latest diagnoses over which the medians are computed. */
const medianOver = 3;
/**
 * Dependence on the prompt is `clear` only if one of two values is large enough: the mutual information as a share of
 * ln N is at least `strongShare`, or the retrieval accuracy on a scale from 0 (chance) to 1 (always correct) is at
 * least `foundAgain`.
 */
const strongShare = 0.25;
const foundAgain = 0.5;

/** `faint`: the reasoning depends on its prompt, but contains little information about it. */
export type Dependence = 'clear' | 'faint' | 'none';
export type ReasoningState =
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

export interface Assessment {
  state: ReasoningState;
  dependence: Dependence;
  /** Lasting fall of the mutual information; null if it has not fallen. */
  fall: Fall | null;
}

/** Assesses one family's diagnoses up to the selected step. `path` contains these diagnoses, at least one. */
export function assess(path: readonly PathPoint[]): Assessment {
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

function stateOf(dependence: Dependence, diverse: boolean, fell: boolean): ReasoningState {
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

const share = ({ information, bound }: PathPoint): number => information.value / bound;
