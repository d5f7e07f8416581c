// What a finished run comes to: the JSON document of `--json`, and the closing words in the terminal.
import type { MetricsLine, RunStatus } from '../../protocol/run-folder';
import { validationSuccess } from '../step-metrics';
import type { RunFolder } from '../store/run-folder';

export interface RunSummary {
  run: string;
  folder: string;
  state: RunStatus['state'];
  /** Steps finished. */
  steps: number;
  validation: { step: number; success: number }[];
  wall_s: number;
  /** Means over the steps: sampled tokens per second of rollouts, trained tokens per second of updates. */
  tokens_per_s: { rollout: number | null; train: number | null };
}

export function summarize(folder: RunFolder, lines: Iterable<MetricsLine>, status: RunStatus | null): RunSummary {
  const validation: RunSummary['validation'] = [];
  const rates = { rollout: new Mean(), train: new Mean() };
  let wallSeconds = 0;
  for (const line of lines) {
    const success = validationSuccess(numbers(line));
    if (success !== null) validation.push({ step: line.step, success });
    rates.rollout.add(line['perf/rollout_tokens_per_s']);
    rates.train.add(line['perf/train_tokens_per_s']);
    wallSeconds = line.wall_s;
  }
  return {
    run: folder.id,
    folder: folder.path,
    state: status?.state ?? 'failed',
    steps: status?.step ?? 0,
    validation,
    wall_s: wallSeconds,
    tokens_per_s: { rollout: rates.rollout.value, train: rates.train.value },
  };
}

/** The mean of the numbers among what is added; null of none. */
class Mean {
  private sum = 0;
  private count = 0;

  add(value: unknown): void {
    if (typeof value !== 'number') return;
    this.sum += value;
    this.count++;
  }

  get value(): number | null {
    return this.count > 0 ? this.sum / this.count : null;
  }
}

/** The closing words: before → after, where the run lies and how to open it. `episodes` are those of an evaluation, which takes no steps. */
export function closingWords(
  { run, folder, steps, validation, wall_s, state }: RunSummary,
  workspace: string,
  episodes?: RunStatus['episodes'],
): string {
  const first = validation.at(0);
  const last = validation.at(-1);
  const lines = [
    episodes
      ? `Run ${run} ${state} after ${episodes.done} of ${episodes.of} episodes.`
      : `Run ${run} ${state} after ${steps} steps in ${duration(wall_s)}.`,
  ];
  if (first && last && last !== first) {
    const gain = (last.success - first.success) * 100;
    lines.push(
      `Validation success ${percent(first.success)} → ${percent(last.success)} (${gain >= 0 ? '+' : ''}${gain.toFixed(1)} points; steps ${first.step} → ${last.step}, seeds never trained on)`,
    );
  } else if (last) lines.push(`Validation success ${percent(last.success)}`);
  lines.push(
    `Run folder: ${folder}`,
    `In VS Code: open ${workspace} with the RAGEN Workbench extension; the run is in the RAGEN view.`,
  );
  return lines.join('\n');
}

const numbers = (line: MetricsLine): Record<string, number> =>
  Object.fromEntries(Object.entries(line).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

const duration = (seconds: number): string =>
  seconds < 60 ? `${seconds.toFixed(0)} s` : `${Math.floor(seconds / 60)} m ${Math.round(seconds % 60)} s`;
