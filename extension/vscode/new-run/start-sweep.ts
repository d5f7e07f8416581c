// Starts a sweep of the New Run page: writes its file into the workspace and runs `ragen sweep` as a task, whose terminal
// shows the progress and the comparison. An interrupt in the terminal stops the sweep; the same file continues it.
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import * as vscode from 'vscode';
import type { Host } from '../host-services';
import { trainerEnvironment } from '../processes/node-runtime';
import { clusterOptions } from '../runs/start/cluster';
import { withProgress } from '../notifications';

/** Folder of sweep files in a workspace, where `ragen sweep` finds them by name. */
const sweepsFolder = join('config', 'sweeps');

export interface SweepStart {
  /** Name of the sweep and of its file, without ending. */
  name: string;
  /** Returns the text of the file, given the name under which it is stored. */
  text(name: string): string;
  /** Absolute path of the workspace folder. */
  folder: string;
  /** Number of runs at a time. */
  jobs: number;
}

/** Writes the sweep file and starts the task; resolves when the task has started. Returns the path of the file. */
export async function startSweep(host: Host, { name, text, folder, jobs }: SweepStart): Promise<string> {
  const title = vscode.l10n.t('Starting the sweep {0}', name);
  return withProgress({ location: vscode.ProgressLocation.Window, title }, async () => {
    const { node, cli } = await host.cliFor(folder);
    const sweeps = join(folder, sweepsFolder);
    await mkdir(sweeps, { recursive: true });
    const free = freeName(sweeps, name);
    const file = join(sweeps, `${free}.yaml`);
    await writeFile(file, text(free), { flag: 'wx' });
    const args = [cli, 'sweep', relative(folder, file), '--jobs', String(jobs), ...clusterOptions()];
    host.log.info(`${node.path} ${args.join(' ')} in ${folder}`);
    const env = Object.fromEntries(
      Object.entries(trainerEnvironment(process.env, node)).filter(
        (pair): pair is [string, string] => pair[1] !== undefined,
      ),
    );
    const scope = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(folder)) ?? vscode.TaskScope.Workspace;
    const execution = new vscode.ProcessExecution(node.path, args, { cwd: folder, env });
    const task = new vscode.Task({ type: 'ragen', sweep: free }, scope, `sweep ${free}`, 'ragen', execution);
    task.presentationOptions = {
      reveal: vscode.TaskRevealKind.Always,
      panel: vscode.TaskPanelKind.Dedicated,
      focus: false,
    };
    task.isBackground = true;
    await vscode.tasks.executeTask(task);
    return file;
  });
}

/** Returns an unused name of a sweep file in `folder`. */
function freeName(folder: string, name: string): string {
  for (let counter = 1; ; counter++) {
    const free = counter === 1 ? name : `${name}-${counter}`;
    if (!existsSync(join(folder, `${free}.yaml`))) return free;
  }
}
