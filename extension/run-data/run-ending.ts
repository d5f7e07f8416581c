// The end of a run in a few facts: best and last validation with the checkpoints, duration, and cost. The notification,
// the dashboard's banner and the status bar show these facts. Pure functions.
import { isUnended, progressOf } from './run-progress';
import type { RunEvent } from './run-events';
import type { Manifest } from './run-manifest';
import type { RunStatus } from './run-status-file';
import { valueAt } from './changeable-settings';

/** A validation and, if the run still has one, the checkpoint of the same step. */
export interface ValidatedStep {
  step: number;
  /** 0…1. */
  success: number;
  /** Folder name, such as `step-000030`; null if no checkpoint of this step exists. */
  checkpoint: string | null;
}

export interface RunEnding {
  state: 'finished' | 'stopped' | 'failed';
  unit: 'step' | 'episode';
  done: number;
  /** Null if the run has no validation. Of equally good validations, one with a checkpoint, else the earliest. */
  best: ValidatedStep | null;
  last: ValidatedStep | null;
  /** Seconds that all sessions of the run took, without pauses; null if no step is finished. */
  seconds: number | null;
  /** Hours × CPU threads, or hours of the GPU; null if the model ran on a server, or if the number is unknown. */
  cpuHours: number | null;
  gpuHours: number | null;
  /** Tokens of all steps, including prompts; null if unknown. */
  tokens: number | null;
}

/** A run and its metrics as columns. */
export interface EndedRunFiles {
  manifest: Pick<Manifest, 'config' | 'hardware'>;
  status: RunStatus;
  events: readonly RunEvent[];
  /** Folder names of the checkpoints. */
  checkpoints: readonly string[];
  table: { readonly keys: readonly string[]; column(key: string): ArrayLike<number> };
}

/** Summarises the files of a run that has ended; null if it has not ended. */
export function endingOf({ manifest, status, events, checkpoints, table }: EndedRunFiles): RunEnding | null {
  const ran = events.findLast(({ kind, message }) => kind === 'setting' && message.startsWith('the model runs on '));
  const cores = Number(manifest.hardware.cores);
  return runEnding({
    status,
    config: manifest.config,
    cores: Number.isFinite(cores) ? cores : undefined,
    checkpoints,
    steps: table.column('step'),
    success: table.keys.filter(key => /^val-env\/[^/]+\/success$/.test(key)).map(key => table.column(key)),
    wall: table.column('wall_s'),
    tokens: table.column('perf/total_num_tokens'),
    provider: /^the model runs on (\w+)/.exec(ran?.message ?? '')?.[1],
  });
}

/** Data of a run. The columns have one value per line of the metrics, NaN where a line lacks the value. */
export interface EndedRun {
  status: RunStatus;
  config: Readonly<Record<string, unknown>>;
  /** CPU cores of the machine that created the run; undefined if unknown. */
  cores: number | undefined;
  /** Folder names of the checkpoints. */
  checkpoints: readonly string[];
  steps: ArrayLike<number>;
  /** Success of each environment tag in the validations. */
  success: readonly ArrayLike<number>[];
  wall: ArrayLike<number>;
  tokens: ArrayLike<number>;
  /** Provider on which the model ran according to the run's events, such as `cuda`; undefined if no event names it. */
  provider: string | undefined;
}

/** Summarises a run that has ended; null if it has not ended. */
export function runEnding(run: EndedRun): RunEnding | null {
  const { state } = run.status;
  if (isUnended(state)) return null;
  const { unit, done } = progressOf(run.status);
  const validations = validatedSteps(run);
  const [top] = [...validations].sort(
    (a, b) => b.success - a.success || Number(b.checkpoint !== null) - Number(a.checkpoint !== null) || a.step - b.step,
  );
  const seconds = lastOf(run.wall);
  return {
    ...{ state: state as RunEnding['state'], unit, done, best: top ?? null, last: validations.at(-1) ?? null, seconds },
    ...hoursOf(run, seconds),
    tokens: totalOf(run.tokens),
  };
}

function validatedSteps({ steps, success, checkpoints }: EndedRun): ValidatedStep[] {
  const found: ValidatedStep[] = [];
  for (let i = 0; i < steps.length; i++) {
    const values = success.map(column => column[i]).filter(value => Number.isFinite(value));
    if (values.length === 0) continue;
    const name = `step-${String(steps[i]).padStart(6, '0')}`;
    found.push({
      step: steps[i],
      success: values.reduce((sum, value) => sum + value, 0) / values.length,
      checkpoint: checkpoints.includes(name) ? name : null,
    });
  }
  return found;
}

function hoursOf(
  { config, cores, provider }: EndedRun,
  seconds: number | null,
): Pick<RunEnding, 'cpuHours' | 'gpuHours'> {
  if (seconds === null || valueAt(config, 'workbench.engine') === 'tinker') return { cpuHours: null, gpuHours: null };
  const device = provider ?? valueAt(config, 'workbench.device');
  if (device === 'cuda' || device === 'webgpu') return { cpuHours: null, gpuHours: seconds / 3600 };
  const threads = Number(valueAt(config, 'workbench.threads') ?? 0) || cores;
  return { cpuHours: threads === undefined ? null : (seconds / 3600) * threads, gpuHours: null };
}

function lastOf(values: ArrayLike<number>): number | null {
  for (let i = values.length - 1; i >= 0; i--) if (Number.isFinite(values[i])) return values[i];
  return null;
}

function totalOf(values: ArrayLike<number>): number | null {
  let total: number | null = null;
  for (let i = 0; i < values.length; i++) if (Number.isFinite(values[i])) total = (total ?? 0) + values[i];
  return total;
}

/** Formats of numbers, which the views supply. */
export interface EndingFormats {
  percent(share: number): string;
  duration(seconds: number): string;
  short(value: number): string;
}

/** Returns the facts of an ending as labels and values, in the order in which views show them. */
export function endingFacts(ending: RunEnding, formats: EndingFormats): [label: string, value: string][] {
  const { best, last, seconds } = ending;
  const cost = costOf(ending, formats);
  return [
    ...(best ? [['Best validation', validationText(best, formats)] as [string, string]] : []),
    ...(last && last.step !== best?.step
      ? [['Last validation', validationText(last, formats)] as [string, string]]
      : []),
    ...(seconds === null ? [] : [['Duration', formats.duration(seconds)] as [string, string]]),
    ...(cost === '' ? [] : [['Cost', cost] as [string, string]]),
  ];
}

/** Returns an ending in one sentence: `quickstart finished after 40 steps: best validation 61 % at step 30 (…), …`. */
export function endingSentence(name: string, ending: RunEnding, formats: EndingFormats): string {
  const { state, done, unit } = ending;
  const head = `Run ${name} ${state === 'stopped' ? 'was stopped' : state} after ${done} ${unit}${done === 1 ? '' : 's'}`;
  const facts = endingFacts(ending, formats).map(([label, value]) => `${label.toLowerCase()} ${value}`);
  return facts.length === 0 ? `${head}.` : `${head}: ${facts.join(', ')}.`;
}

const validationText = ({ step, success, checkpoint }: ValidatedStep, { percent }: EndingFormats): string =>
  `${percent(success)} at step ${step} (${checkpoint ?? 'no checkpoint'})`;

function costOf({ cpuHours, gpuHours, tokens }: RunEnding, { short }: EndingFormats): string {
  const hours = (value: number, unit: string): string => `${value < 0.01 ? 'under 0.01' : short(value)} ${unit} hours`;
  return [
    ...(cpuHours === null ? [] : [hours(cpuHours, 'CPU')]),
    ...(gpuHours === null ? [] : [hours(gpuHours, 'GPU')]),
    ...(tokens === null ? [] : [`${short(tokens)} tokens`]),
  ].join(' · ');
}
