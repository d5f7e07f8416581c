// Plans a run before it is started: memory of its phases on this machine, and time per step. If the run does not fit
// into memory, the plan contains overrides with which the run fits, and a sentence that explains these overrides. If
// the model is on the hub, all its files except the weights are downloaded. If the model is on a server, remote-plan.ts
// makes the plan.
import { statSync } from 'node:fs';
import { cpus } from 'node:os';
import { jsonOrNothing } from '../../common/json';
import { gibibytes } from '../../common/numbers';
import { hasRunFile } from '../../node/read-run-file';
import { exceedsMemory, type PlannedMemory } from '../../run-data/memory-shortage';
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
import { autoCandidates, chooseProvider, providerStates } from '../../engine/session/devices';
import { installation } from '../../node/installation';
import { memoryForRun } from '../../node/machine-memory';
import { largestMicroBatchTokens, planMemory } from '../../models/memory/memory-plan';
import type { MemoryPlan } from '../../models/memory/memory-plan';
import type { PlanInput } from '../../models/memory/plan-input';
import { largestDivisor, remedyFor } from '../../models/memory/memory-overrides';
import { samplingSlots } from '../../models/tinker/request-slots';
import { readDecoderConfig, readTextShape } from '../../models/weights/model-folder';
import { countParameters, fewerEpisodes, planInput } from './memory-input';
import { pictureNotes, pictureWork, shownPictures } from './planned-pictures';
import type { TagPictures } from './planned-pictures';
import { assumedRates, remoteMemory, remoteSizes, remoteTime, trafficOf } from './remote-plan';
import type { RatesBasis, RemotePlan, ServerRates } from './remote-plan';
import { measureRates } from './server-rates';
import { measuredFor, measuredRun, playedAs, stepTime, teaching, workloadOf } from './step-time';
import type { MeasuredRun, StepTime } from './step-time';
import { findHubModel, withSmallFiles } from '../../hub/hub-model';
import { readLines } from '../store/line-log';
import { RunFolder } from '../store/run-folder';

/** Configuration used if the request names none. */
export const defaultConfig = 'base';

/** The plan of a run on this machine; sizes are in bytes. */
export interface RunReport extends MemoryPlan {
  config_name: string;
  /**
   * `parameters` is null if the model is on a server and the local engine does not support the model's architecture.
   */
  model: { path: string; parameters: number | null; trained: 'all' | 'adapters' };
  available: number;
  fits: boolean;
  /**
   * The largest micro-batch of a gradient pass that fits into memory; zeros if a single episode does not fit. Null if the
   * model is on a server.
   */
  largest_micro_batch: { tokens: number; ppo_micro_batch_size_per_gpu: number } | null;
  /** One sentence if the run does not fit into memory, otherwise null. */
  remedy: string | null;
  /** Predicted times. Null for an evaluation, and on a GPU on which no run of this workspace has been measured. */
  time: StepTime | null;
  /** What the run exchanges with its server; null if the model runs on this machine. */
  remote: RemotePlan | null;
  /** The pictures that each tag shows to a vision-language model, with their image tokens. */
  pictures: TagPictures[];
  /** Notes of the configuration, for example about a lowered max_model_len or image tokens. */
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
  /** Loads the configuration with these overrides; by default, from the named configuration or file. */
  load?: (overrides: readonly string[]) => LoadedConfig;
  /** Rates of the server, for a model on a server: given rates, or `measure` to measure the rates. */
  rates?: Partial<ServerRates> | 'measure';
}

/**
 * Limits of the search for measured step times: number of runs read, and number of bytes read from the end of each
 * metrics log.
 */
const mostRuns = 30;
const mostBytes = 2 ** 19;

/**
 * Plans a run on this machine. Also returns the resolved configuration.
 * @param subject the beginning of error messages and of the remedy's sentence, such as the name of a command
 * @throws ConfigError or UserError if the run could not be started
 */
export async function planRun(
  { model, rates, load, ...question }: RunReportRequest,
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
  const loadWith = load ?? (overrides => loadConfig({ ...source, overrides }));
  const first = loadWith(source.overrides);
  const isLocal = first.config.workbench.engine === 'local';
  if (!isLocal && rates === undefined) rates = {};
  if (isLocal && rates !== undefined)
    throw new UserError(
      `${subject}: rates of a server are given, but workbench.engine is local: set workbench.engine=tinker, or omit these options`,
    );
  if (isLocal) chooseProvider(first.config.workbench.device, await providerStates(), 'workbench.device');
  const asked = model === undefined ? undefined : '--model';
  const configName = source.configFile ?? source.configName ?? '';
  const check = isLocal ? readDecoderConfig : readTextShape;
  return withModelFolder(first.config.model_path, workspace, asked, check, async folder => {
    const loaded = fitLength(first, check(folder).maxPositions, override => loadWith([...source.overrides, override]));
    const { config, notes } = loaded;
    if (rates !== undefined)
      return { run: await planRemote({ configName, loaded, folder, workspace, rates, available, subject }), loaded };
    const input = await planInput(config, folder, workspace);
    const parameters = countParameters(input.decoder);
    const { model_path: path, trainer } = config;
    const runs = measuredRuns(workspace);
    const teacher = input.teacher ? countParameters(input.teacher.decoder) : null;
    const work = workloadOf(config, parameters, teacher, pictureWork(config, input.pictures));
    const time = input.trains ? stepTime(work, path, trainer.total_training_steps, runs) : null;
    const run: RunReport = {
      config_name: configName,
      model: { path, parameters, trained: input.lora ? 'adapters' : 'all' },
      ...fit(input, config, available, subject),
      time,
      remote: null,
      pictures: shownPictures(config, folder),
      notes: [...notes, ...pictureNotes(config, folder), ...(teaching(work, 1, runs) === null ? [untimedTeacher] : [])],
    };
    return { run, loaded };
  });
}

const untimedTeacher =
  'the predicted time does not include the teacher, because no run with this teacher has been measured on this machine';

/**
 * Returns the planned memory of a run on this machine. Null if most of the memory is elsewhere: if a GPU may be used, or
 * if the model is behind an API.
 * @throws ConfigError or UserError if the model cannot be used
 */
export async function plannedMemory(
  config: RunConfig,
  workspace: string,
  available = memoryForRun(),
): Promise<PlannedMemory | null> {
  const { device, engine } = config.workbench;
  if (config.model_config !== null && config.trainer.val_only) return null;
  const isLocal = engine === 'local';
  const onGpu = device === 'auto' ? autoCandidates(await providerStates()).length > 0 : device !== 'cpu';
  if (isLocal && onGpu) return null;
  const check = isLocal ? readDecoderConfig : readTextShape;
  return withModelFolder(config.model_path, workspace, undefined, check, async folder => {
    const { peak } = isLocal
      ? planMemory(await planInput(config, folder, workspace))
      : remoteMemory(config, remoteSizes(config, readTextShape(folder).vocabSize));
    return { planned: peak.bytes, available, phase: peak.phase };
  });
}

/** Plans a run whose model is on a server. */
async function planRemote({
  configName,
  loaded: { config, notes },
  folder,
  workspace,
  rates,
  available,
  subject,
}: {
  configName: string;
  loaded: LoadedConfig;
  folder: string;
  workspace: string;
  rates: NonNullable<RunReportRequest['rates']>;
  available: number;
  subject: string;
}): Promise<RunReport> {
  const { model_path: path, workbench, trainer } = config;
  const parameters = parametersIn(folder);
  const sizes = remoteSizes(config, readTextShape(folder).vocabSize);
  const plan = remoteMemory(config, sizes);
  const work = workloadOf(config, parameters ?? 0);
  const runs = measuredRuns(workspace);
  const { run } = measuredFor(work, path, runs);
  const found: ServerRates & { basis: RatesBasis } =
    rates === 'measure'
      ? { ...(await measureRates(config, folder, workspace)), basis: 'measured on the server' }
      : { ...assumedRates, ...rates, basis: Object.keys(rates).length > 0 ? 'given' : 'assumed' };
  const played = playedAs(work, run);
  const teacherSeconds = teaching(played, 1, runs);
  const { time, limit } = remoteTime(config, sizes, played, found, teacherSeconds ?? 0);
  // If the rates are only assumed, a prediction from an earlier run on the same server is more accurate.
  const measured = found.basis === 'assumed' && run ? stepTime(work, path, trainer.total_training_steps, runs) : null;
  const fits = !exceedsMemory({ planned: plan.peak.bytes, available });
  return {
    config_name: configName,
    model: { path, parameters, trained: 'adapters' },
    ...plan,
    available,
    fits,
    largest_micro_batch: null,
    remedy: fits
      ? null
      : `${subject}: the run needs ${gibibytes(plan.peak.bytes)} of this machine in its ${plan.peak.phase}, but ${gibibytes(available)} is available: lower es_manager.train.env_groups or actor_rollout_ref.rollout.max_model_len`,
    time: trainer.val_only ? null : (measured ?? time),
    remote: {
      url: workbench.engine_url ?? '',
      rates: found,
      rows_in_flight: Math.min(samplingSlots(workbench.engine_requests), sizes.episodes),
      ...trafficOf(sizes),
      limit,
    },
    pictures: [],
    notes: [...notes, ...(teacherSeconds === null ? [untimedTeacher] : [])],
  };
}

/** Returns the number of a model's parameters; null if the local engine does not support the model's architecture. */
function parametersIn(folder: string): number | null {
  try {
    return countParameters(readDecoderConfig(folder));
  } catch {
    return null;
  }
}

/**
 * Returns the measurements of the workspace's newest runs on a processor of the same model as this machine's processor.
 * Runs without usable metrics are omitted.
 */
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
): Omit<RunReport, 'config_name' | 'model' | 'time' | 'notes' | 'remote' | 'pictures'> {
  const { actor, rollout } = config.actor_rollout_ref;
  const plan = planMemory(input);
  const fits = !exceedsMemory({ planned: plan.peak.bytes, available });
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
 * Calls `check` and then `work` with a folder that contains a model's files; only the weights may be missing. `asked`
 * is the command option that names the model; undefined if the key model_path names the model. If model_path names a
 * model that cannot be found, throws a ConfigError for this key, so that a form can mark the field.
 */
async function withModelFolder<T>(
  path: string,
  workspace: string,
  asked: string | undefined,
  check: (folder: string) => unknown,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  let known = false;
  const look = (folder: string): Promise<T> => {
    check(folder);
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
