// Plans a run before it is started: memory of its phases on this machine, and time per step. If the run does not fit
// into memory, the plan contains overrides with which the run fits, and a sentence that explains them. If the model is
// on the hub, only its small files are downloaded.
import { statSync } from 'node:fs';
import { cpus } from 'node:os';
import { jsonOrNothing } from '../../common/json';
import { gibibytes } from '../../common/numbers';
import { hasRunFile } from '../../node/read-run-file';
import { metricsLineSchema } from '../../run-data/step-lines';
import { runFiles } from '../../run-data/run-file-names';
import type { MetricsLine } from '../../run-data/step-lines';
import { UserError } from '../../common/user-error';
import { ConfigError } from '../config/config-error';
import { loadConfig } from '../config/load-config';
import type { ConfigRequest } from '../config/load-config';
import type { LoadedConfig } from '../config/loaded-config';
import { fitLength } from '../config/model-length';
import { modelSource } from '../config/model-path';
import { runConfigSchema } from '../config/schema';
import type { RunConfig } from '../config/schema';
import { chooseProvider, providerStates } from '../../engine/session/devices';
import { installation } from '../../node/installation';
import { memoryForRun } from '../../node/machine-memory';
import { largestMicroBatchTokens, planMemory } from '../../models/memory/memory-plan';
import type { MemoryPlan } from '../../models/memory/memory-plan';
import type { PlanInput } from '../../models/memory/plan-input';
import { largestDivisor, remedyFor } from '../../models/memory/memory-overrides';
import { readDecoderConfig } from '../../models/weights/model-folder';
import { countParameters, fewerEpisodes, planInput } from './memory-input';
import { measuredRun, stepTime, workloadOf } from './step-time';
import type { MeasuredRun, StepTime } from './step-time';
import { findHubModel, withSmallFiles } from '../../hub/hub-model';
import { readLines } from '../store/line-log';
import { RunFolder } from '../store/run-folder';

/** Configuration used if the request names none. */
export const defaultConfig = 'base';

/** The plan of a run on this machine; sizes are in bytes. */
export interface RunReport extends MemoryPlan {
  config_name: string;
  model: { path: string; parameters: number; trained: 'all' | 'adapters' };
  available: number;
  fits: boolean;
  /** The largest micro-batch of a gradient pass that fits into memory; zeros if a single episode does not fit. */
  largest_micro_batch: { tokens: number; ppo_micro_batch_size_per_gpu: number };
  /** If the run does not fit into memory, a sentence that says what to change; otherwise null. */
  remedy: string | null;
  /** Predicted times. Null for an evaluation, and on a GPU on which no run of this workspace has been measured. */
  time: StepTime | null;
  /** Notes of the configuration, for example about a lowered max_model_len. */
  notes: string[];
}

/** The run to plan: a configuration by name or file (by default `base`), with overrides. */
export interface RunReportRequest {
  configName?: string;
  configFile?: string;
  /** Replaces model_path. */
  model?: string;
  overrides: readonly string[];
  presetFolders: readonly string[];
  workspace: string;
}

/**
 * Limits of the search for measured step times: number of runs read, and number of bytes read from the end of each
 * metrics log.
 */
const mostRuns = 30;
const mostBytes = 2 ** 19;

/**
 * Plans a run on this machine. Also returns the resolved configuration.
 * @param subject text with which the remedy's sentence begins
 * @throws ConfigError or UserError if the run could not be started
 */
export async function planRun(
  { model, ...question }: RunReportRequest,
  subject: string,
  available = memoryForRun(),
): Promise<{ run: RunReport; loaded: LoadedConfig }> {
  const named = question.configName !== undefined || question.configFile !== undefined;
  const source: ConfigRequest = {
    ...question,
    configName: named ? question.configName : defaultConfig,
    overrides: [...(model === undefined ? [] : [`model_path=${JSON.stringify(model)}`]), ...question.overrides],
  };
  const { workspace } = question;
  const first = loadConfig(source);
  chooseProvider(first.config.workbench.device, await providerStates(), 'workbench.device');
  const asked = model === undefined ? undefined : '--model';
  return withModelFolder(first.config.model_path, workspace, asked, async folder => {
    const loaded = fitLength(first, readDecoderConfig(folder).maxPositions, override =>
      loadConfig({ ...source, overrides: [...source.overrides, override] }),
    );
    const { config, notes } = loaded;
    const input = await planInput(config, folder, workspace);
    const parameters = countParameters(input.decoder);
    const { model_path: path, trainer } = config;
    const time = input.trains
      ? stepTime(workloadOf(config, parameters), path, trainer.total_training_steps, measuredRuns(workspace))
      : null;
    const run: RunReport = {
      config_name: source.configFile ?? source.configName ?? '',
      model: { path, parameters, trained: input.lora ? 'adapters' : 'all' },
      ...fit(input, config, available, subject),
      time,
      notes,
    };
    return { run, loaded };
  });
}

/** Measurements of the newest runs of a workspace on the same processor. Runs without usable metrics are omitted. */
function measuredRuns(workspace: string): MeasuredRun[] {
  const here = cpus()[0]?.model;
  const runs = RunFolder.list(workspace).filter(({ manifest }) => manifest.hardware.cpu === here);
  return runs.slice(0, mostRuns).flatMap(folder => {
    const config = runConfigSchema.safeParse(folder.manifest.config);
    const measured = config.success && measuredRun(folder.manifest, config.data, lastMetrics(folder));
    return measured ? [measured] : [];
  });
}

function lastMetrics(folder: RunFolder): MetricsLine[] {
  const file = folder.file(runFiles.metrics);
  if (!hasRunFile(folder.path, runFiles.metrics)) return [];
  const from = Math.max(0, statSync(file).size - mostBytes);
  const lines = [...readLines(file, from)].slice(from > 0 ? 1 : 0); // the first line may be incomplete
  return lines.flatMap(({ text }) => {
    const line = metricsLineSchema.safeParse(jsonOrNothing(text));
    return line.success ? [line.data] : [];
  });
}

function fit(
  input: PlanInput,
  config: RunConfig,
  available: number,
  subject: string,
): Omit<RunReport, 'config_name' | 'model' | 'time' | 'notes'> {
  const { actor, rollout } = config.actor_rollout_ref;
  const plan = planMemory(input);
  const fits = plan.peak.bytes <= available;
  const tokens = input.trains ? largestMicroBatchTokens(input, available) : 0;
  const miniBatch = actor.ppo_mini_batch_size;
  const remedy = (): string =>
    remedySentence(
      subject,
      plan,
      available,
      remedyFor(input, available, {
        miniBatch,
        shortest: 2 * rollout.response_length,
        fewerEpisodes: fewerEpisodes(config),
      }),
    );
  return {
    ...plan,
    available,
    fits,
    largest_micro_batch: {
      tokens,
      ppo_micro_batch_size_per_gpu: tokens > 0 ? largestDivisor(miniBatch, tokens / input.longest) : 0,
    },
    remedy: fits ? null : remedy(),
  };
}

function remedySentence(
  subject: string,
  { peak }: MemoryPlan,
  available: number,
  { overrides, fits, bytes }: ReturnType<typeof remedyFor>,
): string {
  const problem = `${subject}: the run needs ${gibibytes(peak.bytes)} in its ${peak.phase}, but ${gibibytes(available)} is available`;
  if (fits) return `${problem}: set ${listed(overrides)}, which needs ${gibibytes(bytes)}`;
  const even = overrides.length > 0 ? `even with ${listed(overrides)} it needs ${gibibytes(bytes)}, so ` : '';
  return `${problem}: ${even}use a smaller model or a machine with more memory`;
}

/**
 * Calls `work` with a folder that contains at least the small files of a model. `asked` is the command option that
 * names the model; undefined if the key model_path names it. If model_path names a model that cannot be found, throws a
 * ConfigError for this key, so that a form can mark the field.
 */
async function withModelFolder<T>(
  path: string,
  workspace: string,
  asked: string | undefined,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  let known = false;
  const look = (folder: string): Promise<T> => {
    readDecoderConfig(folder);
    known = true;
    return work(folder);
  };
  try {
    const source = modelSource(path, { workspace, modelFolders: [installation.models], asked });
    if ('folder' in source) return await look(source.folder);
    const facts = await findHubModel(source.hub);
    return await (facts.folder === null ? withSmallFiles(facts, look) : look(facts.folder));
  } catch (error) {
    const isOfModel = !known && asked === undefined && error instanceof UserError && !(error instanceof ConfigError);
    throw isOfModel ? new ConfigError([{ key: 'model_path', message: error.message }]) : error;
  }
}

const listed = (overrides: readonly string[]): string => overrides.join(' ');
