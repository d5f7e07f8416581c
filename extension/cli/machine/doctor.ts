// `ragen doctor`: reports this machine's resources, and whether a run fits into its memory. The memory plan reads only
// the model's config.json, so the weights of a hub model are not fetched. Contract: the JSON document contains every
// fact that the text contains, and gives numbers with more digits.
import type { Command } from 'commander';
import { maximum } from '../../common/lists';
import { autoCandidates, providerStates } from '../../engine/session/devices';
import { gibibytes } from '../../common/numbers';
import { selfCheckApart } from '../../models/self-check';
import { defaultConfig, planRun } from '../../trainer/plan/run-plan';
import type { RemotePlan } from '../../trainer/plan/remote-plan';
import type { RunReportRequest, RunReport } from '../../trainer/plan/run-plan';
import type { StepTime } from '../../trainer/plan/step-time';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { checkEngine, engineCheckRows, type EngineFlags } from './report/engine-check';
import { environmentLimitRows } from './report/environment-limits';
import { machineReport } from './report/machine-report';
import type { MachineReport } from './report/machine-report';
import { presetFolders, workspaceOf } from '../options/workspace';

export interface PlanFlags {
  model?: string;
  configName?: string;
  config?: string;
  workspace?: string;
  json?: boolean;
}

export function addDoctor(program: Command): void {
  program
    .command('doctor')
    .description('report this machine’s resources, and whether a run fits into its memory')
    .argument('[overrides...]', 'key=value, such as lora.rank=16')
    .option('--model <model>', 'folder, hub model or bundled model that replaces the configuration’s model_path')
    .option('--config-name <name>', `name of a configuration (default with --model or overrides: ${defaultConfig})`)
    .option('--config <file>', 'configuration file')
    .option('--workspace <folder>', 'folder with configurations and runs (default: the current folder)')
    .option('--engine <url>', 'also check a server (default: the server of the configuration, if it names one)')
    .option('--engine-key-env <name>', 'environment variable with the API key of --engine')
    .option('--engine-model <name>', 'model that --engine must offer')
    .option('--json', 'print one JSON document on standard output, logs on standard error')
    .action((overrides: string[], flags: PlanFlags & EngineFlags) => answer(flags, () => doctor(overrides, flags)));
}

async function doctor(overrides: readonly string[], flags: PlanFlags & EngineFlags): Promise<Answer> {
  const workspace = workspaceOf(flags.workspace);
  const asked = overrides.length > 0 || [flags.model, flags.configName, flags.config].some(flag => flag !== undefined);
  const planned = asked ? await planRun(questionOf(overrides, flags, workspace), 'doctor') : null;
  const run = planned?.run ?? null;
  const engine = await checkEngine(flags, planned?.loaded.config);
  const candidates = autoCandidates(await providerStates());
  const machine = await machineReport(workspace, provider => selfCheckApart(provider, 0), candidates);
  const { node } = machine;
  const failed = node.fits
    ? (run?.remedy ?? (engine && 'problem' in engine ? engine.problem : undefined))
    : `doctor: this is Node ${node.version}, but ${node.required} is needed: install a newer version`;
  return {
    document: { machine, run, engine },
    plainText: [
      ...formatMachine(machine, engine ? engineCheckRows(engine) : []),
      ...(run ? ['', ...formatRun(run)] : []),
    ].join('\n'),
    failed,
  };
}

/** Converts a command's overrides and flags to a request for a report on a run. */
export const questionOf = (overrides: readonly string[], flags: PlanFlags, workspace: string): RunReportRequest => ({
  configName: flags.configName,
  configFile: flags.config,
  model: flags.model,
  overrides,
  presetFolders: presetFolders(workspace),
  workspace,
});

function formatMachine(report: MachineReport, engine: readonly [string, string][]): string[] {
  const { node, platform, cpu, memory, onnxruntime, disk, folders, environments, optional } = report;
  const providers = onnxruntime.providers.map(({ provider, known, installed, self_check }) => {
    const state = !known ? 'not in this build' : !installed ? 'library not installed' : 'available';
    const tried =
      provider === 'cpu' || !known || !installed ? '' : `, ${self_check?.about ?? 'not tried: no GPU found'}`;
    return [`  ${provider}`, `${state}${tried}`];
  });
  const limit = memory.limit === null ? '' : `, limited to ${gibibytes(memory.limit)} by a control group`;
  return table([
    ['Node', `${node.version}${node.fits ? '' : ` (${node.required} is needed)`} on ${platform}`],
    ['Processor', `${cpu.model}, ${cpu.usable} of ${cpu.cores} cores usable`],
    ['Memory', `${gibibytes(memory.available)} available of ${gibibytes(memory.total)}${limit}`],
    ['Disk', `${gibibytes(disk.free)} free in ${disk.folder}`],
    ...folders.flatMap(({ for: use, problem }) =>
      problem === null ? [] : [['Folder', `${problem}; used for ${use}`]],
    ),
    ['onnxruntime', `${onnxruntime.version}; auto is ${onnxruntime.auto}`],
    ...providers,
    ...environmentLimitRows(environments),
    ...optional.map(({ name, found, for: use }) => [name, found ?? `not found; needed only for ${use}`]),
    ...engine,
  ]);
}

export function formatRun(run: RunReport): string[] {
  const { model, rows, phases, peak, available, largest_micro_batch: largest, remote } = run;
  const trained = model.trained === 'all' ? 'all trained' : 'only adapters trained';
  const size = model.parameters === null ? 'size unknown' : `${model.parameters.toLocaleString('en')} parameters`;
  const pass =
    largest !== null && largest.tokens > 0
      ? `Largest micro-batch that fits: ${largest.tokens.toLocaleString('en')} tokens (ppo_micro_batch_size_per_gpu=${largest.ppo_micro_batch_size_per_gpu})`
      : 'Largest micro-batch that fits: none; not even one episode of maximum length fits';
  return [
    `${run.config_name} with ${model.path}${remote ? ` on ${remote.url}` : ''}: ${size}, ${trained}`,
    ...run.notes.map(note => `note: ${note}`),
    ...table(
      phases.flatMap(({ phase, held }) => [
        [`  ${phase}`, gibibytes(held).padStart(9), 'in use at the end of the phase'],
        ...rows
          .filter(row => row.phase === phase)
          .map(({ what, bytes, how }) => [`    ${what}`, gibibytes(bytes).padStart(9), how]),
      ]),
    ),
    `Peak: ${gibibytes(peak.bytes)} in the ${peak.phase}; ${gibibytes(available)} available`,
    ...(largest !== null && phases.some(({ phase }) => phase === 'policy update') ? [pass] : []),
    run.fits ? 'It fits.' : 'It does not fit.',
    ...(remote ? formatRemote(remote) : []),
    ...(run.time ? [formatTime(run.time)] : []),
  ];
}

function formatRemote({ rates, rows_in_flight, requests, bytes, limit }: RemotePlan): string[] {
  const count = (value: number): string => Math.round(value).toLocaleString('en');
  const { round_trip_s, sampled_per_s, scored_per_s, trained_per_s, basis } = rates;
  return [
    `In flight: ${count(rows_in_flight)} rows; a step: at most ${count(requests)} requests, ${gibibytes(bytes.sent)} sent, ${gibibytes(bytes.received)} received`,
    `Server: ${count(sampled_per_s)} tokens/s sampled, ${count(scored_per_s)} scored, ${count(trained_per_s)} trained, round trip ${(1000 * round_trip_s).toPrecision(3)} ms (${basis})`,
    `The rollout is limited by: ${limit}`,
  ];
}

/** Formats rows of cells as lines with aligned columns. */
function table(rows: readonly (readonly string[])[]): string[] {
  const widths = [0, 1].map(i => maximum(rows.map(cells => cells[i].length)));
  return rows.map(cells => cells.map((cell, i) => (i < cells.length - 1 ? cell.padEnd(widths[i]) : cell)).join('  '));
}

function formatTime({ step_s, generation_s, total_s, basis, run }: StepTime): string {
  const from = {
    measured: `as measured in ${run?.id}`,
    scaled: `scaled from ${run?.id}`,
    assumed: 'rough estimate: no run measured on this machine yet',
    rates: 'from the rates of the server',
  };
  return `A step: about ${seconds(step_s)}, including ${seconds(generation_s)} rollout; all steps: ${seconds(total_s)} (${from[basis]})`;
}

const seconds = (s: number): string =>
  s < 90 ? `${s.toPrecision(2)} s` : s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
