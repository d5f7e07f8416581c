// The diagnosis of template collapse within a training step: whether what the model thinks depends on what it was
// shown. Pairs of prompt and reasoning are drawn from the whole rollout, before any filter; every reasoning is scored
// under every prompt by the policy that wrote it; diagnostics/collapse-metrics.ts makes the metrics. What they were
// made from goes into the run folder.
import { collapseFile } from '../../run-data/diagnostics';
import type { CollapseDiagnosis, CollapseFamily } from '../../run-data/diagnostics';
import { judgeRegime, regimes, retrievalOverChance } from '../../run-data/regimes';
import type { RegimeHistory } from '../../run-data/regimes';
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import { collapseMetrics } from '../diagnostics/collapse-metrics';
import type { CollapseState, MarginalSpread } from '../diagnostics/collapse-metrics';
import { firstTurnPairs, promptSignature, trajectoryPairs, turnPairs } from '../diagnostics/pair-sampling';
import type { EpisodePairs, PairFamily } from '../diagnostics/pair-sampling';
import { promptIntervals } from '../diagnostics/prompt-bootstrap';
import type { Engine } from '../../engine/engine';
import { RandomStream } from '../../engine/sampling/random-stream';
import type { Journal } from '../run/journal';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { reasoningPieces } from '../rollout/reasoning-pieces';
import { passBudget } from '../run/pass-budget';
import { diagnosesCollapse } from '../plan/run-plan';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { deriveSeed } from '../rollout/seeds';
import type { Stopwatch } from './stopwatch';

/** What the diagnosis asks of a run. */
export interface DiagnosedRun {
  config: RunConfig;
  engine: Pick<Engine, 'crossScore'>;
  journal: Pick<Journal, 'event'>;
  tokenizer: Pick<ChatTokenizer, 'encode' | 'decode'>;
  /** Shows how much of the engine's call that follows is done. */
  follow?(what: string): void;
  /** Keeps a file of the diagnostics until the step is written. */
  keepDiagnosis(...found: Parameters<Journal['diagnosis']>): void;
}

/** RAGEN's names of the families, with how each is drawn, when, and whose time it counts to. */
const families = [
  {
    name: 'collapse_first_turn_sample',
    draw: firstTurnPairs,
    enabled: (c: RunConfig) => c.collapse_detection.first_turn_enabled,
    phase: 'first_turn',
  },
  {
    name: 'collapse_trajectory_sample',
    draw: trajectoryPairs,
    enabled: (c: RunConfig) => c.collapse_detection.multi_turn_enabled,
    phase: 'multi_turn',
  },
  {
    name: 'collapse_turn_sample',
    draw: turnPairs,
    enabled: (c: RunConfig) => c.workbench.collapse_turn_uniform,
    phase: 'multi_turn',
  },
] as const;

/** Step 1 and every multiple of `compute_freq`. */
const diagnosisDue = (config: RunConfig, step: number): boolean =>
  diagnosesCollapse(config) && (step === 1 || (step > 0 && step % config.collapse_detection.compute_freq === 0));

/**
 * Metrics of the rollout of step `step`, under RAGEN's keys, and the state after it; both as they were where no
 * diagnosis is due. A family of fewer than two prompts says nothing and is left out.
 */
export async function diagnoseCollapse(
  run: DiagnosedRun,
  state: CollapseState,
  episodes: readonly RolloutEpisode[],
  step: number,
  clock: Stopwatch,
): Promise<{ metrics: Record<string, number>; state: CollapseState }> {
  const { collapse_detection: settings, seed } = run.config;
  if (!diagnosisDue(run.config, step)) return { metrics: {}, state };
  return clock.time('collapse_metrics', async () => {
    const started = performance.now();
    const pieces = episodes.map(episode => ({
      episode,
      ...reasoningPieces(episode, text => run.tokenizer.encode(text)),
    }));
    const pairs = pieces.map(({ episode, first, turns }): EpisodePairs => ({
      episode: episode.id,
      group: episode.group_id,
      first,
      turns,
    }));
    const metrics = coverage(pieces, settings.first_turn_enabled);
    const spread = { ...state.spread };
    const histories = { ...state.regimes };
    const diagnosis: CollapseDiagnosis = { step, families: [] };
    for (const { name, draw, enabled, phase } of families) {
      if (!enabled(run.config)) continue;
      await clock.time(`collapse_${phase}_step`, async () => {
        run.follow?.(`cross-scoring, ${phase.replace('_', ' ')}`);
        const random = new RandomStream(deriveSeed(name, seed.train, step));
        const family = drawn(run, step, () => draw(pairs, settings.num_samples, random));
        if (!family || family.columns.length < 2) return;
        const found = await measured(run, family, spread[name] ?? null, histories[name] ?? null, random);
        spread[name] = found.spread;
        histories[name] = found.history;
        diagnosis.families.push({ name, ...found.family });
        for (const [key, value] of Object.entries(found.family.metrics)) metrics[`${name}/${key}`] = value;
      });
    }
    run.keepDiagnosis(collapseFile(step), step, diagnosis);
    const seconds = state.seconds + (performance.now() - started) / 1000;
    return {
      metrics: { ...metrics, 'timing_s/collapse_total': seconds },
      state: { spread, regimes: histories, seconds },
    };
  });
}

/** The family, or null with a warning where it cannot be drawn from this rollout. */
function drawn({ journal }: DiagnosedRun, step: number, draw: () => PairFamily): PairFamily | null {
  try {
    return draw();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    journal.event('warning', error.message, { step });
    return null;
  }
}

async function measured(
  { config, engine, tokenizer }: DiagnosedRun,
  { columns, samples }: PairFamily,
  spread: MarginalSpread | null,
  earlier: RegimeHistory | null,
  random: RandomStream,
): Promise<{ family: Omit<CollapseFamily, 'name'>; spread: MarginalSpread; history: RegimeHistory }> {
  const { rollout } = config.actor_rollout_ref;
  const sums = await engine.crossScore(
    columns.map(ids => Int32Array.from(ids)),
    samples.map(({ reasoning }) => Int32Array.from(reasoning)),
    passBudget(config, rollout.log_prob_micro_batch_size_per_gpu, config.collapse_detection.micro_batch_size),
    rollout.temperature,
  );
  const lengths = samples.map(({ reasoning }) => reasoning.length);
  const perToken = sums.map((row, i) => Array.from(row, sum => sum / lengths[i]));
  const own = samples.map(({ column }) => column);
  const signatures = numbered(columns.map(promptSignature));
  const found = collapseMetrics({ perToken, lengths, columns: own, signatures }, spread);
  const intervals = promptIntervals(
    found.samples,
    own.map(column => signatures[column]),
    random,
  );
  const { judgement, history } = judgeRegime(earlier, {
    information: found.metrics.mi_estimate,
    informationLow: intervals.mi_estimate_ci_low,
    entropy: found.metrics.conditional_entropy_est,
    retrieval: retrievalOverChance(found.metrics.retrieval_accuracy, found.metrics.retrieval_chance_level),
  });
  return {
    spread: found.spread,
    history,
    family: {
      prompts: columns.map(ids => ({ text: tokenizer.decode(ids, { special: true }), tokens: ids.length })),
      samples: samples.map(({ episode, group, turn, reasoning }) => ({
        episode,
        group,
        turn,
        text: tokenizer.decode(reasoning),
      })),
      log_probs_per_token: perToken.map(row => row.map(x => Number(x.toPrecision(7)))),
      lengths,
      column: own,
      signatures,
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

/** How many turns have a thought to speak of. */
function coverage(
  pieces: readonly { first: unknown; turnCount: number; turnTotal: number }[],
  firstTurns: boolean,
): Record<string, number> {
  const sum = (pick: (piece: (typeof pieces)[number]) => number): number =>
    pieces.reduce((total, piece) => total + pick(piece), 0);
  const valid = sum(({ first }) => Number(first !== null));
  return {
    'collapse/valid_thinking_rate': sum(({ turnCount }) => turnCount) / sum(({ turnTotal }) => turnTotal),
    ...(firstTurns && {
      'collapse/first_turn_num_total': pieces.length,
      'collapse/first_turn_num_valid': valid,
      'collapse/first_turn_valid_rate': valid / pieces.length,
    }),
  };
}

/** The same number for the same text. */
function numbered(texts: readonly string[]): number[] {
  const numbers = new Map<string, number>();
  return texts.map(text => {
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text)!;
  });
}
