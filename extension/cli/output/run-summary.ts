// The summary of a run: the JSON document of `--json`, and the closing text in the terminal.
import type { MetricsLine } from '../../run-data/step-lines';
import type { RunEvent } from '../../run-data/run-events';
import type { RunStatus } from '../../run-data/run-status-file';
import { validationReturn, validationSuccess } from '../../trainer/loop/metric-statistics';
import type { RunFolder } from '../../trainer/store/run-folder';
import { DiagnosisHistory, formatRegime, type DiagnosedRegime } from './run-findings';

/** An alarm or an early stop, with its evidence. */
interface Finding {
  step: number;
  name: string;
  message: string;
}

export interface RunSummary {
  run: string;
  folder: string;
  state: RunStatus['state'];
  /** Number of finished steps. */
  steps: number;
  /** `return` is the mean of the episodes' returns. */
  validation: { step: number; success: number; return: number | null }[];
  /** Raised alarms, in order. */
  alarms: Finding[];
  /** The rule that ended the run early; null otherwise. */
  early_stop: Finding | null;
  /** The newest collapse diagnosis; null if the run has none. */
  diagnosis: DiagnosedRegime | null;
  wall_s: number;
  /**
   * Means over the steps. `rollout` is the number of sampled tokens per second of rollout. `train` is the number of
   * trained tokens per second of policy update.
   */
  tokens_per_s: { rollout: number | null; train: number | null };
}

/** Summarises a run in one pass over metrics and events. */
export function summarize(
  folder: RunFolder,
  lines: Iterable<MetricsLine>,
  events: Iterable<RunEvent>,
  status: RunStatus | null,
): RunSummary {
  const validation: RunSummary['validation'] = [];
  const rates = { rollout: new Mean(), train: new Mean() };
  const diagnoses = new DiagnosisHistory();
  let diagnosis: DiagnosedRegime | null = null;
  let wallSeconds = 0;
  for (const line of lines) {
    const metrics = numbersOf(line);
    const success = validationSuccess(metrics);
    if (success !== null) validation.push({ step: line.step, success, return: validationReturn(metrics) });
    diagnosis = diagnoses.add(line.step, metrics) ?? diagnosis;
    rates.rollout.add(line['perf/rollout_tokens_per_s']);
    rates.train.add(line['perf/train_tokens_per_s']);
    wallSeconds = line.wall_s ?? wallSeconds;
  }
  const alarms: Finding[] = [];
  let earlyStop: Finding | null = null;
  for (const event of events) {
    if (event.kind === 'alarm') alarms.push(findingOf(event, 'alarm'));
    if (event.kind === 'resume') earlyStop = null;
    if (event.kind === 'early_stop') earlyStop = findingOf(event, 'type');
  }
  return {
    run: folder.id,
    folder: folder.path,
    state: status?.state ?? 'failed',
    steps: status?.step ?? 0,
    validation,
    alarms,
    early_stop: earlyStop,
    diagnosis,
    wall_s: wallSeconds,
    tokens_per_s: { rollout: rates.rollout.value, train: rates.train.value },
  };
}

/**
 * Converts the event of an alarm or early stop to a finding. The event's `data` contains the finding's name under
 * `key`.
 */
const findingOf = ({ kind, step, message, data }: RunEvent, key: string): Finding => ({
  step: Number(data?.step ?? step),
  name: String(data?.[key] ?? kind),
  message,
});

/** Running mean. Added values that are not numbers are ignored; the mean of no values is null. */
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

/**
 * Formats the closing text: the first and the last validation, the run's folder, and how to open the run. `episodes` is
 * the number of episodes of an evaluation, which has no steps.
 */
export function formatClosing(
  { run, folder, steps, validation, alarms, early_stop, diagnosis, wall_s, state }: RunSummary,
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
  if (early_stop) lines.push(`Stopped early at step ${early_stop.step}: ${early_stop.message}`);
  if (first && last && last !== first) {
    const gain = (last.success - first.success) * 100;
    lines.push(
      `Validation success ${percent(first.success)} → ${percent(last.success)} (${gain >= 0 ? '+' : ''}${gain.toFixed(1)} points; steps ${first.step} → ${last.step}, seeds never trained on)`,
    );
  } else if (last) lines.push(`Validation success ${percent(last.success)}`);
  if (last && last.return !== null) {
    const before = last !== first && typeof first?.return === 'number' ? `${first.return.toFixed(2)} → ` : '';
    lines.push(`Validation return ${before}${last.return.toFixed(2)}`);
  }
  if (diagnosis) lines.push(`Diagnosis at step ${diagnosis.step}: ${formatRegime(diagnosis)}`);
  if (alarms.length > 0) lines.push(`Alarms: ${alarms.map(({ name, step }) => `${name} (step ${step})`).join(', ')}`);
  lines.push(
    `Run folder: ${folder}`,
    `In VS Code: open ${workspace} with the RAGEN Workbench extension; the run is in the RAGEN view.`,
  );
  return lines.join('\n');
}

/** Returns the numeric values of a metrics line. */
export const numbersOf = (line: MetricsLine): Record<string, number> =>
  Object.fromEntries(Object.entries(line).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));

const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;

const duration = (seconds: number): string =>
  seconds < 60 ? `${seconds.toFixed(0)} s` : `${Math.floor(seconds / 60)} m ${Math.round(seconds % 60)} s`;
