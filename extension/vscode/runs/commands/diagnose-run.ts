// The command that scores the stored rollouts of another trainer's run under a model, on this machine or on a saved
// engine (`ragen diagnose`). The process is
// detached, so it continues when the window is closed; Cancel ends it, and the command continues with the steps that are
// not scored yet.
import * as vscode from 'vscode';
import { registerCommands } from '../../command';
import { engineLine, type KeptEngine } from '../../engines/kept-engines';
import type { Host } from '../../host-services';
import { notifyInformation, withProgress } from '../../notifications';
import { askCli } from '../../processes/cli-command';
import { showInputBox, showQuickPick } from '../../questions';
import { trusted } from '../../workspace-trust';
import { workspaceOf, type Run } from '../run-store';

export function registerDiagnose(context: vscode.ExtensionContext, host: Host): void {
  context.subscriptions.push(
    registerCommands(host, {
      'ragen.diagnoseRun': () => async argument => {
        if (!trusted()) return;
        const none = vscode.l10n.t('There is no run of another trainer. Runs of this product diagnose themselves.');
        const run = await host.picker.pick(argument, ({ trainer }) => trainer !== undefined, none);
        const scorer = run && (await askForScorer(host.engines.engines));
        const steps = scorer && (await askForSteps());
        if (run && scorer && steps) await diagnose(host, run, scorer, steps);
      },
    }),
  );
}

const titleText = (): string => vscode.l10n.t('Diagnose Reasoning under a Model');

/** What scores the texts. */
interface Scorer {
  /** Folder or name of the model; on a server, of its tokenizer. */
  model: string;
  /** The saved engine that scores; undefined for this machine. */
  engine?: KeptEngine;
}

/** Asks for the model and, if engines are saved, for the machine that runs it; undefined if the user cancels. */
async function askForScorer(engines: readonly KeptEngine[]): Promise<Scorer | undefined> {
  const here = vscode.l10n.t('This machine');
  const places = [
    { label: here },
    ...engines.map(engine => ({ label: engine.name, detail: engineLine(engine), engine })),
  ];
  const placeHolder = vscode.l10n.t('Where is the model run?');
  const place: { label: string; engine?: KeptEngine } | undefined =
    engines.length === 0 ? places[0] : await showQuickPick(places, { title: titleText(), placeHolder });
  const model = place && (await askForModel(place.engine));
  return model === undefined ? undefined : { model, ...(place?.engine && { engine: place.engine }) };
}

/**
 * Asks for the model; undefined if the user cancels.
 * @param engine the engine that scores, for which the model's tokenizer is needed
 */
async function askForModel(engine?: KeptEngine): Promise<string | undefined> {
  const title = titleText();
  const [folder, hub] = [vscode.l10n.t('Choose a folder…'), vscode.l10n.t('Name a model of the Hugging Face hub…')];
  const bundled = vscode.l10n.t('bundled: knows only small puzzles, so its numbers say little about other tasks');
  const chosen = await showQuickPick(
    [
      {
        label: folder,
        detail: vscode.l10n.t('a checkpoint in Hugging Face format, with config.json and tokenizer.json'),
      },
      { label: hub, detail: vscode.l10n.t('for example the base model of the run') },
      { label: 'ragen-small', detail: bundled },
      { label: 'ragen-tiny', detail: bundled },
    ],
    {
      title,
      placeHolder: engine
        ? vscode.l10n.t('Whose tokenizer and chat template has the model on {0}?', engine.name)
        : vscode.l10n.t('Which model scores the texts? Best is the one that was trained.'),
    },
  );
  if (chosen?.label === folder) {
    const found = await vscode.window.showOpenDialog({ title, canSelectFolders: true, canSelectFiles: false });
    return found?.[0].fsPath;
  }
  if (chosen?.label !== hub) return chosen?.label;
  const prompt = vscode.l10n.t('organisation/name, optionally with @revision');
  const name = await showInputBox({ title, prompt, placeHolder: 'Qwen/Qwen2.5-0.5B-Instruct' });
  return name === undefined || name.trim() === '' ? undefined : name.trim();
}

/** Asks for the steps; returns the CLI's options, or undefined if the user cancels. */
async function askForSteps(): Promise<string[] | undefined> {
  const text = await showInputBox({
    title: titleText(),
    prompt: vscode.l10n.t('Steps: 10,20,40, or every 10. Empty for 20 steps at equal distances.'),
    validateInput: value => (optionsOf(value) ? undefined : vscode.l10n.t('Use numbers with commas, or every 10')),
  });
  return text === undefined ? undefined : optionsOf(text);
}

/** Converts the answer to options of `ragen diagnose`; undefined if it is invalid. */
function optionsOf(text: string): string[] | undefined {
  const given = text.trim();
  if (given === '') return [];
  const every = /^every\s+(\d{1,12})$/.exec(given)?.[1];
  if (every !== undefined) return Number(every) > 0 ? ['--every', every] : undefined;
  return /^\d{1,12}(\s*,\s*\d{1,12})*$/.test(given) ? ['--steps', given.replaceAll(/\s/g, '')] : undefined;
}

/** Returns the CLI's options for a scorer. */
const scorerOptions = ({ model, engine }: Scorer): string[] => [
  ...['--model', model],
  ...(engine ? ['--engine', engine.url] : []),
  ...(engine && engine.model !== null ? ['--server-model', engine.model] : []),
  ...(engine ? (engine.keyEnv === null ? ['--no-key'] : ['--key-env', engine.keyEnv]) : []),
];

async function diagnose(host: Host, run: Run, scorer: Scorer, steps: readonly string[]): Promise<void> {
  const model = scorer.engine?.name ?? scorer.model;
  const { id, name } = run.summary;
  const title = vscode.l10n.t('Scoring rollouts of {0} under {1}', name, model);
  const cwd = workspaceOf(run);
  const answer = await withProgress(
    { location: vscode.ProgressLocation.Notification, title, cancellable: true },
    async (_progress, token) => {
      const { node, cli } = await host.cliFor(cwd);
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      try {
        return await askCli(node, cli, ['diagnose', id, ...scorerOptions(scorer), ...steps], cwd, title, stop.signal);
      } catch (error) {
        if (token.isCancellationRequested) return undefined;
        throw error;
      }
    },
  );
  if (!answer) return;
  const scored = Array.isArray(answer['scored']) ? answer['scored'].length : 0;
  const notes: unknown[] = Array.isArray(answer['notes']) ? answer['notes'] : [];
  const open = vscode.l10n.t('Collapse');
  const sentence = vscode.l10n.t('{0}: {1} steps scored under {2}.', name, scored, model);
  const first = notes.length > 0 ? ` ${String(notes[0])}${notes.length > 1 ? ` (+${notes.length - 1})` : ''}.` : '';
  if ((await notifyInformation(`${sentence}${first}`, open)) === open)
    await vscode.commands.executeCommand('ragen.openCollapse', run.folder);
}
