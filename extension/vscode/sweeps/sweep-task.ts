// Runs `ragen sweep` as a task, whose terminal shows the progress and the comparison. An interrupt in the terminal stops
// the sweep; the same task continues it.
import { relative } from 'node:path';
import * as vscode from 'vscode';
import type { CliInvocation } from '../processes/cli-command';
import { trainerEnvironment } from '../processes/node-runtime';
import { clusterOptions } from '../runs/start/cluster';
import { sweepName } from './sweep-list';

export interface SweepTask {
  /** Absolute path of the workspace folder. */
  workspace: string;
  /** Absolute path of the sweep file. */
  file: string;
  /** Overrides of every run. */
  overrides?: readonly string[];
  /** Number of runs at a time; undefined for as many as the machine allows. */
  jobs?: number;
}

/** What starting a task needs of the extension's services. */
interface TaskServices {
  cliFor(cwd: string): Promise<CliInvocation>;
  log: Pick<vscode.LogOutputChannel, 'info'>;
}

/** Starts a sweep, or continues it; resolves when the task has started. */
export async function runSweepTask(
  services: TaskServices,
  { workspace, file, overrides = [], jobs }: SweepTask,
): Promise<void> {
  const { node, cli } = await services.cliFor(workspace);
  const inside = relative(workspace, file);
  const limit = jobs === undefined ? [] : ['--jobs', String(jobs)];
  // After `--`, no file name and no override of a stored sweep can become an option.
  const words = [inside.startsWith('..') ? file : inside, ...overrides];
  const args = [cli, 'sweep', ...limit, ...clusterOptions(), '--', ...words];
  services.log.info(`${node.path} ${args.join(' ')} in ${workspace}`);
  const env = Object.fromEntries(
    Object.entries(trainerEnvironment(process.env, node)).filter(
      (pair): pair is [string, string] => pair[1] !== undefined,
    ),
  );
  const scope = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(workspace)) ?? vscode.TaskScope.Workspace;
  const name = sweepName(file);
  const execution = new vscode.ProcessExecution(node.path, args, { cwd: workspace, env });
  const task = new vscode.Task({ type: 'ragen', sweep: name }, scope, `sweep ${name}`, 'ragen', execution);
  task.presentationOptions = {
    reveal: vscode.TaskRevealKind.Always,
    panel: vscode.TaskPanelKind.Dedicated,
    focus: false,
  };
  task.isBackground = true;
  await vscode.tasks.executeTask(task);
}
