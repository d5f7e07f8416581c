// One family of a collapse diagnosis: cross-scoring of the sampled pairs, and the metrics, intervals and regime that
// follow from the scores. Used by a run's own diagnosis (collapse-diagnosis.ts) and by the diagnosis of stored rollouts
// under a model (inspection/stored-diagnosis.ts).
import type { CollapseFamily } from '../../run-data/diagnostics';
import { judgeRegime, regimes, retrievalOverChance } from '../../run-data/regimes';
import type { RegimeHistory } from '../../run-data/regimes';
import type { IntegerStream } from '../../algorithms/mini-batches';
import type { Engine } from '../../engine/engine';
import type { PassBudget } from '../../engine/training-samples';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { collapseMetrics } from '../diagnostics/collapse-metrics';
import type { MarginalSpread } from '../diagnostics/collapse-metrics';
import { promptSignature } from '../diagnostics/pair-sampling';
import type { PairFamily } from '../diagnostics/pair-sampling';
import { promptIntervals } from '../diagnostics/prompt-bootstrap';

/** The parts of a diagnosis that do not depend on earlier diagnoses. */
export type ScoredFamily = Omit<CollapseFamily, 'name' | 'metrics' | 'regime'>;

/** The model that scores, and how it scores. */
export interface FamilyScorer {
  engine: Pick<Engine, 'crossScore'>;
  tokenizer: Pick<ChatTokenizer, 'decode'>;
  budget: PassBudget;
  temperature: number;
}

/** Earlier diagnoses of the same family, on which its z-scores and its regime depend; null for the first. */
export interface FamilyHistory {
  spread: MarginalSpread | null;
  regimes: RegimeHistory | null;
}

/** Scores each reasoning text of a family under each of its prompts. */
export async function scoreFamily(
  { engine, tokenizer, budget, temperature }: FamilyScorer,
  { columns, samples, shows }: PairFamily,
): Promise<ScoredFamily> {
  const sums = await engine.crossScore(
    columns.map(ids => Int32Array.from(ids)),
    samples.map(({ reasoning }) => Int32Array.from(reasoning)),
    budget,
    temperature,
    shows,
  );
  const lengths = samples.map(({ reasoning }) => reasoning.length);
  return {
    prompts: columns.map(ids => ({ text: tokenizer.decode(ids, { special: true }), tokens: ids.length })),
    samples: samples.map(({ episode, group, turn, reasoning }) => ({
      episode,
      group,
      turn,
      text: tokenizer.decode(reasoning),
    })),
    log_probs_per_token: sums.map((row, i) => Array.from(row, sum => sum / lengths[i])),
    lengths,
    column: samples.map(({ column }) => column),
    signatures: numbered(columns.map((ids, i) => promptSignature(ids, shows?.[i]))),
  };
}

/**
 * Computes the metrics, intervals and regime of a scored family. Log-probs are rounded to seven digits in the result.
 * @param random stream of the bootstrap
 */
export function judgeFamily(
  scored: ScoredFamily,
  earlier: FamilyHistory,
  random: IntegerStream,
): { family: Omit<CollapseFamily, 'name'>; spread: MarginalSpread; history: RegimeHistory } {
  const { log_probs_per_token: perToken, lengths, column, signatures } = scored;
  const found = collapseMetrics({ perToken, lengths, columns: column, signatures }, earlier.spread);
  const intervals = promptIntervals(
    found.samples,
    column.map(each => signatures[each]),
    random,
  );
  const { judgement, history } = judgeRegime(earlier.regimes, {
    information: found.metrics.mi_estimate,
    informationLow: intervals.mi_estimate_ci_low,
    entropy: found.metrics.conditional_entropy_est,
    retrieval: retrievalOverChance(found.metrics.retrieval_accuracy, found.metrics.retrieval_chance_level),
  });
  return {
    spread: found.spread,
    history,
    family: {
      ...scored,
      log_probs_per_token: perToken.map(row => row.map(sevenDigits)),
      metrics: {
        ...found.metrics,
        ...intervals,
        regime: regimes.indexOf(judgement.regime) + 1,
        regime_confidence: judgement.confidence,
        mi_threshold: judgement.thresholds.information,
      },
      regime: judgement.regime,
    },
  };
}

/** Rounds a log-prob as diagnosis files store it. */
export const sevenDigits = (x: number): number => Number(x.toPrecision(7));

/** Replaces each text by a number; equal texts get equal numbers. */
function numbered(texts: readonly string[]): number[] {
  const numbers = new Map<string, number>();
  return texts.map(text => {
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text)!;
  });
}
