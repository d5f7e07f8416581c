// `RAGEN: Export Data Set…`: writes episodes of a run for fine-tuning or as trajectories. From the Episodes page, the
// episodes are those that it lists; from the palette, the user gives a filter. The CLI (`ragen export`) writes the file.
import { basename, join } from 'node:path';
import * as vscode from 'vscode';
import { parseFilter } from '../../../run-data/episode-filter';
import type { Command } from '../../command';
import { notifyInformation, withProgress } from '../../notifications';
import { askCli } from '../../processes/cli-command';
import { showInputBox, showQuickPick } from '../../questions';
import type { RunArgument } from '../run-picker';
import { workspaceOf } from '../run-store';
import { anyRun, noRuns } from './run-checks';

interface Format extends vscode.QuickPickItem {
  format: 'sft' | 'dpo' | 'messages' | 'atif' | 'parquet';
  ending: string;
}

const formats = (): Format[] => [
  { label: 'SFT', detail: vscode.l10n.t('JSON lines with messages, for supervised fine-tuning'), ...lines('sft') },
  {
    label: 'DPO',
    detail: vscode.l10n.t('JSON lines with prompt, chosen, rejected: best against worst episode of each prompt group'),
    ...lines('dpo'),
  },
  { label: 'OpenAI messages', detail: vscode.l10n.t('JSON lines with messages and metadata'), ...lines('messages') },
  {
    label: 'Parquet',
    detail: vscode.l10n.t('One table with messages, turns and tokens'),
    format: 'parquet',
    ending: 'parquet',
  },
  { label: 'ATIF', detail: vscode.l10n.t('A folder with one trajectory file per episode'), format: 'atif', ending: '' },
];

const lines = <F extends Format['format']>(format: F): { format: F; ending: string } => ({ format, ending: 'jsonl' });

export const exportDataSet: Command = host => async argument => {
  const run = await host.picker.pick(argument, anyRun, noRuns());
  if (!run) return;
  const { id, name } = run.summary;
  const title = vscode.l10n.t('Export Data Set of {0}', name);
  const filter = givenFilter(argument) ?? (await askForFilter(title));
  if (filter === undefined) return;
  const chosen = await showQuickPick(formats(), { title, placeHolder: filter, matchOnDetail: true });
  if (!chosen) return;
  const target = await askForTarget(join(workspaceOf(run), `${id}-${chosen.format}`), chosen, title);
  if (!target) return;
  const { node, cli } = await host.cliFor(workspaceOf(run));
  const args = [
    'export',
    '--run',
    id,
    '--format',
    chosen.format,
    '--out',
    target.fsPath,
    '--force',
    `--episodes=${filter}`,
  ];
  const answer = await withProgress({ location: vscode.ProgressLocation.Notification, title }, () =>
    askCli(node, cli, args, workspaceOf(run), vscode.l10n.t('the export')),
  );
  const { rows, note } = answer;
  const written = vscode.l10n.t('Data set written: {0}, {1} lines', basename(target.fsPath), Number(rows));
  const reveal = vscode.l10n.t('Reveal');
  const message = typeof note === 'string' && note !== '' ? `${written}. ${note}.` : written;
  if ((await notifyInformation(message, reveal)) === reveal)
    await vscode.commands.executeCommand('revealFileInOS', target);
};

/** Returns the filter that the Episodes page passes; undefined if the command has another origin. */
function givenFilter(argument: RunArgument): string | undefined {
  if (typeof argument !== 'object' || !('filter' in argument)) return undefined;
  return typeof argument.filter === 'string' ? argument.filter : undefined;
}

const askForFilter = (title: string): Thenable<string | undefined> =>
  showInputBox({
    title,
    prompt: vscode.l10n.t('Filter of the episodes. Press Enter without a filter to export all.'),
    placeHolder: 'mode:train success:true step:40..60',
    validateInput: line => parseFilter(line).problems[0],
  });

/** Lets the user choose a file or, for ATIF, the parent of the new folder. */
async function askForTarget(
  path: string,
  { format, ending, label }: Format,
  title: string,
): Promise<vscode.Uri | undefined> {
  if (format !== 'atif')
    return vscode.window.showSaveDialog({
      title,
      defaultUri: vscode.Uri.file(`${path}.${ending}`),
      filters: { [label]: [ending] },
    });
  const [parent] =
    (await vscode.window.showOpenDialog({
      ...{ title, canSelectFiles: false, canSelectFolders: true, openLabel: vscode.l10n.t('Export Here') },
    })) ?? [];
  return parent && vscode.Uri.joinPath(parent, basename(path));
}
