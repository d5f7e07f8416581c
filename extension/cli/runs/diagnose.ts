// `ragen diagnose`: scores the stored rollouts of another trainer's run under a model, as a run's own diagnosis of
// collapse does. The model runs on this machine or on a server. Steps are scored in ascending order; each is written when it is complete, so an interrupted command
// continues where it stopped. Runs at low priority.
import { constants, setPriority } from 'node:os';
import { basename, resolve } from 'node:path';
import type { Command } from 'commander';
import { counted, formatNumber } from '../../common/numbers';
import { printable } from '../../common/printable';
import { UserError } from '../../common/user-error';
import { devices, type Device } from '../../engine/session/devices';
import { readDecoderConfig, readTokenizer } from '../../models/weights/model-folder';
import { runFiles } from '../../run-data/run-file-names';
import { metricsLineSchema } from '../../run-data/step-lines';
import { textProxyNote } from '../../run-data/text-proxy';
import { scoreStep, storedPairs } from '../../trainer/inspection/stored-diagnosis';
import { StoredPictures } from '../../trainer/inspection/stored-pictures';
import { readValues } from '../../trainer/store/line-log';
import { RunFolder } from '../../trainer/store/run-folder';
import { episodeFiles, episodesIn } from '../../trainer/store/stored-episodes';
import { modelFolder } from '../model-files/fetch-model';
import { device, wholeNumber } from '../options/model-options';
import { withCommon, type CommonFlags } from '../options/run-options';
import { workspaceOf } from '../options/workspace';
import { answer, type Answer } from '../output/answer';
import { ScoredSteps } from '../run-lifecycle/scored-steps';
import {
  localEngine,
  scoringServer,
  serverEngine,
  type DiagnosingEngine,
  type ScoringServer,
  type ServerEngineFlags,
} from './diagnosing-engine';

interface DiagnoseFlags extends CommonFlags, Omit<ServerEngineFlags, 'engine'> {
  model: string;
  steps?: number[];
  every?: number;
  samples: number;
  device: Device;
  threads: number;
  engine?: string;
  replace?: boolean;
}

/** Number of steps that are scored without --steps and --every. */
const defaultSteps = 20;
/** Tokens and texts per pass of the engine; larger passes need more memory and are not faster on a CPU. */
const budget = { maxTokens: 8192, maxRows: 32 };
/** Milliseconds between two lines of progress. */
const progressMs = 5000;

export function addDiagnose(program: Command): void {
  withCommon(
    program.command('diagnose').description('score the stored rollouts of another trainer’s run under a model'),
  )
    .argument('<run>', 'id of a run that ragen attach opened')
    .requiredOption('--model <model>', 'folder in Hugging Face format, hub model (organisation/name), or bundled model')
    .option('--steps <list>', 'steps to score, such as 10,20,40', stepList)
    .option('--every <count>', 'score every step whose number is a multiple of this', wholeNumber('--every', 1))
    .option('--samples <count>', 'reasoning texts per step and family', wholeNumber('--samples', 2, 1024), 64)
    .option('--device <name>', `where the model runs: ${devices.join(', ')}`, device, 'cpu')
    .option('--threads <count>', 'threads on the CPU; 0 for half of the cores', wholeNumber('--threads', 0, 1024), 0)
    .option(
      '--engine <url>',
      'score on a server of the Tinker API, such as https://host:8000; --model is then its tokenizer',
    )
    .option(
      '--server-model <name>',
      'name of the base model on the server; required if the server offers several models',
    )
    .option(
      '--key-env <name>',
      'environment variable with the server’s API key (default: TINKER_API_KEY, if it is set)',
    )
    .option('--no-key', 'send no API key')
    .option('--replace', 'remove the diagnoses that were made with another model or number of samples')
    .addHelpText(
      'after',
      `
Computes I(X;Z), H(Z|X), retrieval accuracy and the regime of each step, and adds them to the run's metrics and its Collapse page, marked
with the model. Use the model that was trained, at the checkpoint nearest to the steps, or its base. Without --steps and --every, ${defaultSteps} steps
at equal distances are scored. Steps that were scored before are left out. The time grows with the square of --samples.
With --engine, each text is sent after each prompt, and --device and --threads have no effect.`,
    )
    .action((run: string, flags: DiagnoseFlags) => answer(flags, () => diagnose(run, flags)));
}

async function diagnose(id: string, flags: DiagnoseFlags): Promise<Answer> {
  setPriority(constants.priority.PRIORITY_LOW); // inherited by the engine's threads, which start later
  const folder = RunFolder.find(workspaceOf(flags.workspace), id);
  if (!folder.manifest.trainer)
    throw new UserError(
      `run ${id} was trained by RAGEN Workbench, which diagnoses its runs while it trains them: see its Collapse page`,
    );
  const chosen = chosenSteps(folder, flags);
  const { engine } = flags;
  const server = engine === undefined ? undefined : scoringServer({ ...flags, engine });
  const path = await modelFolder(flags.model, process.cwd(), '--model');
  const source = isPath(flags.model) ? path : flags.model;
  const scored = await ScoredSteps.open(folder, {
    model: modelName(flags.model),
    source: server ? `${source} on ${server.url}` : source,
    ...{ samples: flags.samples, replace: flags.replace ?? false },
  });
  try {
    const before = new Set(scored.steps);
    const steps = chosen.filter(step => !before.has(step));
    const notes = steps.length > 0 ? await scoreSteps(folder, scored, steps, { path, server, flags }) : [];
    const left = chosen.length - steps.length;
    const text = [
      `Run ${id}: ${counted(steps.length, 'step')} scored under ${modelName(flags.model)}${left > 0 ? `, ${left} before` : ''}.`,
      ...notes,
      ...besideProxy(folder, chosen),
    ];
    return { document: { run: id, scored: steps, steps: scored.steps, notes }, plainText: text.join('\n') };
  } finally {
    scored.close();
  }
}

/**
 * Returns a line for each of the steps that has both I(X;Z) of first turns under the model and the proxy from texts
 * alone, and then how well the proxy follows I(X;Z); nothing if no step has both.
 */
function besideProxy(folder: RunFolder, steps: readonly number[]): string[] {
  const lines = [...readValues(folder.file(runFiles.metrics), value => metricsLineSchema.parse(value))];
  const both = lines.flatMap(({ value: line }) => {
    const [information, proxy] = [line['collapse_first_turn_sample/mi_estimate'], line['thoughts/prompt_information']];
    if (!steps.includes(line.step) || typeof information !== 'number' || typeof proxy !== 'number') return [];
    return [`step ${line.step}: I(X;Z) ${formatNumber(information)} nats, text-only proxy ${formatNumber(proxy)}`];
  });
  return both.length > 0 ? [...both, `Text-only proxy: ${textProxyNote}.`] : [];
}

/** Scores steps in ascending order; returns a sentence for each step with a note. */
async function scoreSteps(
  folder: RunFolder,
  scored: ScoredSteps,
  steps: readonly number[],
  { path, server, flags }: { path: string; server: ScoringServer | undefined; flags: DiagnoseFlags },
): Promise<string[]> {
  const { model, samples } = flags;
  const { maxPositions } = readDecoderConfig(path);
  const tokenizer = readTokenizer(path);
  const engine = server
    ? await serverEngine(server, report)
    : await localEngine(path, flags, { folder: folder.file(runFiles.pictures) });
  // The models of a server read text only.
  const pictures = !server && tokenizer.pictures ? new StoredPictures(folder.path, tokenizer) : undefined;
  const notes: string[] = [];
  try {
    for (const [i, step] of steps.entries()) {
      reportUnits(engine, `step ${step} (${i + 1} of ${steps.length})`);
      const pairs = storedPairs(episodesOf(folder, step), tokenizer, maxPositions, pictures);
      const scorer = { engine, tokenizer, budget, temperature: 1, model: modelName(model) };
      const { diagnosis, note } = await scoreStep(step, pairs, samples, scorer);
      const rate: Record<string, number> =
        pairs.turns > 0 ? { 'collapse/valid_thinking_rate': pairs.thoughts / pairs.turns } : {};
      await scored.add(diagnosis, rate, note);
      if (note !== undefined) notes.push(`step ${step}: ${note}`);
    }
  } finally {
    await engine.stop();
  }
  return notes;
}

function* episodesOf(folder: RunFolder, step: number) {
  for (const { value } of episodesIn(folder, { mode: 'train', step })) yield value;
}

const report = (text: string): void => void process.stderr.write(`${printable(text)}\n`);

/** Prints the progress of the engine's calls at intervals. */
function reportUnits(engine: DiagnosingEngine, what: string): void {
  report(what);
  let shown = performance.now();
  engine.onUnits = (done, of) => {
    if (performance.now() - shown < progressMs) return;
    shown = performance.now();
    report(`${what}: ${Math.floor((100 * done) / of)} %`);
  };
}

/** Returns the steps to score, ascending. Throws a UserError if a chosen step has no stored rollouts. */
function chosenSteps(folder: RunFolder, { steps, every }: DiagnoseFlags): number[] {
  if (steps && every !== undefined) throw new UserError('--steps and --every were both given: give one of them');
  const stored = episodeFiles(folder)
    .flatMap(({ mode, step }) => (mode === 'train' ? [step] : []))
    .sort((a, b) => a - b);
  if (stored.length === 0)
    throw new UserError(`run ${folder.id} has no stored rollouts of training steps, so there is nothing to score`);
  const missing = steps?.find(step => !stored.includes(step));
  if (missing !== undefined)
    throw new UserError(
      `--steps names step ${missing}, of which run ${folder.id} has no rollouts: its rollouts are of ${stored.length} steps from ${stored[0]} to ${stored.at(-1)}`,
    );
  if (steps) return [...new Set(steps)].sort((a, b) => a - b);
  if (every !== undefined) return stored.filter(step => step % every === 0);
  const last = Math.min(defaultSteps, stored.length) - 1;
  return Array.from({ length: last + 1 }, (_, i) => stored[Math.round((i * (stored.length - 1)) / Math.max(1, last))]);
}

function stepList(text: string): number[] {
  if (!/^\d{1,12}(?:,\d{1,12})*$/.test(text))
    throw new UserError(`--steps is ${JSON.stringify(text)}: give numbers of steps with commas, such as 10,20`);
  return text.split(',').map(Number);
}

const isPath = (model: string): boolean => /^[./\\~]|^[A-Za-z]:[\\/]/.test(model);

/** Returns the name that marks the diagnoses: the name as given, or the name of the given folder. */
const modelName = (model: string): string => (isPath(model) ? basename(resolve(model)) : model);
