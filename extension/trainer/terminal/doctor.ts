// `ragen doctor`: what this machine has, and whether a run fits into its memory before it is started. The plan needs config.json alone: a
// model of the hub is planned without its weights being fetched. Contract: the JSON document holds what the words say, and more exactly.
import type { Command } from 'commander';
import { loadConfig } from '../config/load-config';
import type { LoadOptions, LoadedConfig } from '../config/load-config';
import { modelSource } from '../config/model-path';
import type { RunConfig } from '../config/schema';
import { autoCandidates, chooseProvider, providerStates } from '../engine/devices';
import { installation } from '../installation';
import { gibibytes, memoryForRun } from '../machine-memory';
import { largestMicroBatchTokens, planMemory } from '../models/memory-plan';
import type { MemoryPlan, PlanInput } from '../models/memory-plan';
import { largestDivisor, remedyFor } from '../models/memory-remedy';
import { readDecoderConfig } from '../models/model-folder';
import { selfCheckApart } from '../models/self-check';
import { countParameters, fewerEpisodes, planInput } from '../run-plan';
import { findHubModel, withSmallFiles } from '../store/hub-model';
import { answer } from './answer';
import type { Answer } from './answer';
import { machineReport } from './machine-report';
import type { MachineReport } from './machine-report';
import { presetFolders, workspaceOf } from './start';

/** The configuration of a question that names none. */
const defaultConfig = 'base';

interface DoctorFlags {
  model?: string;
  configName?: string;
  config?: string;
  workspace?: string;
  json?: boolean;
}

/** The plan of a run on this machine; bytes. */
export interface RunReport extends MemoryPlan {
  config_name: string;
  model: { path: string; parameters: number; trained: 'all' | 'adapters' };
  available: number;
  fits: boolean;
  /** The largest pass with gradient that memory allows; zeros where not even one episode fits. */
  largest_micro_batch: { tokens: number; ppo_micro_batch_size_per_gpu: number };
  /** One sentence where the run does not fit. */
  remedy: string | null;
  /** What was assumed besides the configuration. */
  notes: string[];
}

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('what this machine has, and whether a run fits into its memory')
    .argument('[overrides...]', 'key=value, such as lora.rank=16')
    .option('--model <model>', 'folder, model of the hub or one that comes along, in place of model_path')
    .option('--config-name <name>', `configuration by name (with --model or overrides alone: ${defaultConfig})`)
    .option('--config <file>', 'configuration file')
    .option('--workspace <folder>', 'folder whose configurations and runs are meant (default: here)')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .action((overrides: string[], flags: DoctorFlags) => answer(flags, () => doctor(overrides, flags)));
}

async function doctor(overrides: readonly string[], flags: DoctorFlags): Promise<Answer> {
  const available = memoryForRun();
  const workspace = workspaceOf(flags.workspace);
  const asked = overrides.length > 0 || [flags.model, flags.configName, flags.config].some(flag => flag !== undefined);
  const run = asked ? await planRun(overrides, flags, workspace, available) : null;
  const candidates = autoCandidates(await providerStates());
  const machine = await machineReport(workspace, provider => selfCheckApart(provider, 0), candidates);
  const { node } = machine;
  const failed = node.fits
    ? (run?.remedy ?? undefined)
    : `doctor: this is Node ${node.version}, but ${node.required} is needed: install a newer one`;
  return {
    document: { machine, run },
    words: [...machineWords(machine), ...(run ? ['', ...runWords(run)] : [])].join('\n'),
    failed,
  };
}

/** Plans the run that these flags describe. Throws a ConfigError or UserError where there could be none. */
async function planRun(
  overrides: readonly string[],
  flags: DoctorFlags,
  workspace: string,
  available: number,
): Promise<RunReport> {
  const named = flags.configName !== undefined || flags.config !== undefined;
  const source: LoadOptions = {
    configName: named ? flags.configName : defaultConfig,
    configFile: flags.config,
    overrides: [...(flags.model === undefined ? [] : [`model_path=${JSON.stringify(flags.model)}`]), ...overrides],
    presetFolders: presetFolders(workspace),
    workspace,
  };
  const asked = flags.model === undefined ? undefined : '--model';
  const loaded = loadConfig(source);
  chooseProvider(loaded.config.workbench.device, await providerStates(), 'workbench.device');
  return withModelFolder(loaded.config.model_path, workspace, asked, async folder => {
    const { config, notes } = withinModel(loaded, folder, source, named);
    const input = await planInput(config, folder, workspace);
    return {
      config_name: source.configFile ?? source.configName ?? '',
      model: {
        path: config.model_path,
        parameters: countParameters(input.decoder),
        trained: input.lora ? 'adapters' : 'all',
      },
      ...fit(input, config, available),
      notes,
    };
  });
}

function fit(
  input: PlanInput,
  config: RunConfig,
  available: number,
): Omit<RunReport, 'config_name' | 'model' | 'notes'> {
  const { actor, rollout } = config.actor_rollout_ref;
  const plan = planMemory(input);
  const fits = plan.peak.bytes <= available;
  const tokens = input.trains ? largestMicroBatchTokens(input, available) : 0;
  const miniBatch = actor.ppo_mini_batch_size;
  const remedy = (): string =>
    remedySentence(
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
  { peak }: MemoryPlan,
  available: number,
  { overrides, fits, bytes }: ReturnType<typeof remedyFor>,
): string {
  const problem = `doctor: the run would hold ${gibibytes(peak.bytes)} in its ${peak.phase}, but ${gibibytes(available)} can be had`;
  if (fits) return `${problem}: set ${listed(overrides)}, which holds ${gibibytes(bytes)}`;
  const even = overrides.length > 0 ? `even ${listed(overrides)} hold ${gibibytes(bytes)}, so ` : '';
  return `${problem}: ${even}use a smaller model or a machine with more memory`;
}

/** Calls `work` with a folder that has at least the model's small files. `asked` names what gave the model (default: the key). */
async function withModelFolder<T>(
  path: string,
  workspace: string,
  asked: string | undefined,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const source = modelSource(path, { workspace, modelFolders: [installation.models], asked });
  if ('folder' in source) return work(source.folder);
  const facts = await findHubModel(source.hub);
  return facts.folder === null ? withSmallFiles(facts, work) : work(facts.folder);
}

/** Where nobody chose a configuration, episodes of the default one are cut to what the model has positions for. */
function withinModel(loaded: LoadedConfig, folder: string, source: LoadOptions, named: boolean): LoadedConfig {
  const { maxPositions } = readDecoderConfig(folder);
  const key = 'actor_rollout_ref.rollout.max_model_len';
  const { max_model_len } = loaded.config.actor_rollout_ref.rollout;
  if (named || max_model_len <= maxPositions || source.overrides.some(override => override.includes(key)))
    return loaded;
  const shorter = loadConfig({ ...source, overrides: [...source.overrides, `${key}=${maxPositions}`] });
  return { ...shorter, notes: [...shorter.notes, `${key}=${maxPositions}, which is all that the model has`] };
}

function machineWords({ node, platform, cpu, memory, onnxruntime, disk, optional }: MachineReport): string[] {
  const providers = onnxruntime.providers.map(({ provider, known, installed, self_check }) => {
    const state = !known ? 'not in this build' : !installed ? 'library not installed' : 'there';
    const tried = provider === 'cpu' || !known || !installed ? '' : `, ${self_check?.about ?? 'not tried: no GPU is in sight'}`; // prettier-ignore
    return [`  ${provider}`, `${state}${tried}`];
  });
  const limit = memory.limit === null ? '' : `, limited to ${gibibytes(memory.limit)} by a control group`;
  return table([
    ['Node', `${node.version}${node.fits ? '' : ` (${node.required} is needed)`} on ${platform}`],
    ['Processor', `${cpu.model}, ${cpu.usable} of ${cpu.cores} cores usable`],
    ['Memory', `${gibibytes(memory.available)} available of ${gibibytes(memory.total)}${limit}`],
    ['Disk', `${gibibytes(disk.free)} free in ${disk.folder}`],
    ['onnxruntime', `${onnxruntime.version}; auto is ${onnxruntime.auto}`],
    ...providers,
    ...optional.map(({ name, found, for: use }) => [name, found ?? `not found; only ${use} would need it`]),
  ]);
}

function runWords(run: RunReport): string[] {
  const { model, rows, phases, peak, available, largest_micro_batch: largest } = run;
  const trained = model.trained === 'all' ? 'all of them trained' : 'adapters trained over them';
  const pass =
    largest.tokens > 0
      ? `Largest pass with gradient: ${largest.tokens.toLocaleString('en')} tokens (ppo_micro_batch_size_per_gpu=${largest.ppo_micro_batch_size_per_gpu})`
      : 'Largest pass with gradient: none, not even one episode of the greatest length';
  return [
    `${run.config_name} with ${model.path}: ${model.parameters.toLocaleString('en')} parameters, ${trained}`,
    ...run.notes.map(note => `note: ${note}`),
    ...table(
      phases.flatMap(({ phase, held }) => [
        [`  ${phase}`, gibibytes(held).padStart(9), 'held by its end'],
        ...rows
          .filter(row => row.phase === phase)
          .map(({ what, bytes, how }) => [`    ${what}`, gibibytes(bytes).padStart(9), how]),
      ]),
    ),
    `Peak: ${gibibytes(peak.bytes)} in the ${peak.phase}; ${gibibytes(available)} can be had`,
    ...(peak.phase.endsWith('update') ? [pass] : []),
    run.fits ? 'It fits.' : 'It does not fit.',
  ];
}

/** Rows of cells with their columns under one another. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = [0, 1].map(i => Math.max(...rows.map(cells => cells[i].length)));
  return rows.map(cells => cells.map((cell, i) => (i < cells.length - 1 ? cell.padEnd(widths[i]) : cell)).join('  '));
}

const listed = (overrides: readonly string[]): string => overrides.join(' ');
