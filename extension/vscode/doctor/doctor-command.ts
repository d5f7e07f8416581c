// `RAGEN: Doctor`: shows the problems that prevent runs from starting or finishing on this machine, as a read-only
// document. Changes nothing on the machine.
import * as vscode from 'vscode';
import { messageOf, registerCommands, type Command } from '../command';
import type { Host } from '../host-services';
import { machineReportSchema, type MachineFacts } from '../../protocol/machine-report';
import { findingsOf, reportText, type EditorFacts } from './doctor-report';
import type { NodeRuntime } from '../processes/node-runtime';
import { notifyBriefly, withProgress } from '../notifications';
import { isActive } from '../runs/run-format';
import { askCli } from '../processes/cli-command';
import { askServer } from '../engines/probe-server';

const scheme = 'ragen-doctor';
const uri = vscode.Uri.from({ scheme, path: '/RAGEN Doctor.txt' });

/** Registers the command and the provider of its document. */
export function registerDoctor(context: vscode.ExtensionContext, host: Host): void {
  const doctor = new Doctor((context.extension.packageJSON as { version: string }).version);
  context.subscriptions.push(doctor, registerCommands(host, { 'ragen.doctor': doctor.command }));
}

/** Provides the document. Also registers the command behind the button that copies the report. */
class Doctor implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly provider = vscode.workspace.registerTextDocumentContentProvider(scheme, this);
  private readonly copying = vscode.commands.registerCommand('ragen.copyDoctorReport', async () => {
    await vscode.env.clipboard.writeText(this.text);
    notifyBriefly(vscode.l10n.t('Report copied to the clipboard'), 4000, 'check');
  });
  private text = '';

  constructor(private readonly version: string) {}

  /** The command: creates a new report and shows the document. */
  readonly command: Command = host => async () => {
    const progress = { location: vscode.ProgressLocation.Window, title: vscode.l10n.t('Examining this machine') };
    await withProgress(progress, async () => {
      this.text = await this.examine(host);
      this.changed.fire(uri);
      await vscode.window.showTextDocument(uri, { preview: true });
    });
  };

  provideTextDocumentContent(): string {
    return this.text || vscode.l10n.t('Run RAGEN: Doctor to examine this machine.');
  }

  dispose(): void {
    vscode.Disposable.from(this.changed, this.provider, this.copying).dispose();
  }

  private async examine(host: Host): Promise<string> {
    const folders = (vscode.workspace.workspaceFolders ?? []).map(folder => folder.uri.fsPath);
    const cwd = folders[0] ?? host.extensionPath;
    const found = await host.cliFor(cwd).catch((error: unknown) => ({ problem: (error as Error).message }));
    const engines = 'problem' in found ? [] : examineEngines(host);
    const { runs } = host.store;
    const editor: EditorFacts = {
      extension: this.version,
      editor: `${vscode.env.appName} ${vscode.version}`,
      remote: vscode.env.remoteName,
      trusted: vscode.workspace.isTrusted,
      folders,
      keys: host.secrets.names,
      runs: { all: runs.length, active: runs.filter(({ summary }) => isActive(summary)).length },
      node: 'problem' in found ? found : found.node,
      engines: await engines,
    };
    const machine = 'problem' in found ? found : await examineMachine(found, cwd);
    const text = reportText(findingsOf(editor, machine));
    host.log.info(text);
    return text;
  }
}

/** Tests all engine servers that the user has saved, in parallel. Creates nothing on these servers. */
const examineEngines = (host: Host): Promise<EditorFacts['engines']> =>
  Promise.all(
    host.engines.engines.map(async ({ name, ...server }) => ({
      name,
      found: await askServer(host, server, ['--quick', '--timeout', '30']).catch((error: unknown) => ({
        problem: messageOf(error),
      })),
    })),
  );

async function examineMachine(
  { node, cli }: { node: NodeRuntime; cli: string },
  cwd: string,
): Promise<MachineFacts | { problem: string }> {
  try {
    const answer = await askCli(node, cli, ['doctor'], cwd, vscode.l10n.t('the doctor'));
    return machineReportSchema.parse(answer.machine);
  } catch (error) {
    return { problem: (error as Error).message };
  }
}
