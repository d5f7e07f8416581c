// The diagnosis of template collapse within a training step: it measures whether the model's reasoning depends on the
// prompt. Pairs of prompt and reasoning are sampled from the complete rollout, before the rollout filter. The policy
// that sampled the reasoning then scores each reasoning under each prompt, and diagnostics/collapse-metrics.ts computes
// the metrics. The scores, prompts and reasoning texts are written to the run folder.
import { collapseFile } from '../../run-data/diagnostics';
import type { CollapseDiagnosis } from '../../run-data/diagnostics';
import { UserError } from '../../common/user-error';
import type { RunConfig } from '../config/schema';
import type { CollapseState } from '../diagnostics/collapse-metrics';
import { firstTurnPairs, trajectoryPairs, turnPairs } from '../diagnostics/pair-sampling';
import type { EpisodePairs, PairFamily } from '../diagnostics/pair-sampling';
import type { Engine } from '../../engine/engine';
import { RandomStream } from '../../engine/sampling/random-stream';
import type { Journal } from '../run/journal';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import { reasoningPieces } from '../rollout/reasoning-pieces';
import { passBudget } from '../run/pass-budget';
import { diagnosesCollapse } from '../plan/memory-input';
import type { RolloutEpisode } from '../rollout/rollout-batch';
import { deriveSeed } from '../rollout/seeds';
import { judgeFamily, scoreFamily, type FamilyScorer } from './family-diagnosis';
import type { Stopwatch } from './stopwatch';

/** The parts of a run that the diagnosis uses. */
export interface DiagnosedRun {
  config: RunConfig;
  engine: Pick<Engine, 'crossScore'>;
  journal: Pick<Journal, 'event'>;
  tokenizer: Pick<ChatTokenizer, 'encode' | 'decode'>;
  /** Shows the progress of the next engine call under the label `what`. */
  follow?(what: string): void;
  /** Queues a diagnosis file, which is written together with the step. */
  keepDiagnosis(...found: Parameters<Journal['diagnosis']>): void;
}

/**
 * The kinds of prompt–reasoning pairs (families), with RAGEN's names. `draw` samples the pairs of a family. `enabled`
 * returns whether the configuration enables the family. `phase` is the family's name in the timing metrics.
 */
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

/** Whether a diagnosis is due: in step 1 and in each step whose number is a multiple of `compute_freq`. */
const diagnosisDue = (config: RunConfig, step: number): boolean =>
  diagnosesCollapse(config) && (step === 1 || (step > 0 && step % config.collapse_detection.compute_freq === 0));

/**
 * Diagnoses the rollout of step `step`. Returns metrics under RAGEN's keys and the new state. If no diagnosis is due,
 * there are no metrics and the state is unchanged. A family with fewer than two prompts is omitted, because its mutual
 * information would always be 0.
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
        const scored = await scoreFamily(scorerOf(run), family);
        const earlier = { spread: spread[name] ?? null, regimes: histories[name] ?? null };
        const found = judgeFamily(scored, earlier, random);
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

/** Samples a family of pairs. If sampling is impossible in this rollout, writes a warning and returns null. */
function drawn({ journal }: DiagnosedRun, step: number, draw: () => PairFamily): PairFamily | null {
  try {
    return draw();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    journal.event('warning', error.message, { step });
    return null;
  }
}

function scorerOf({ config, engine, tokenizer }: DiagnosedRun): FamilyScorer {
  const { rollout } = config.actor_rollout_ref;
  const { micro_batch_size } = config.collapse_detection;
  const budget = passBudget(config, rollout.log_prob_micro_batch_size_per_gpu, micro_batch_size);
  return { engine, tokenizer, budget, temperature: rollout.temperature };
}

/** Returns the share of turns, and of first turns, that contain a thought. */
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
