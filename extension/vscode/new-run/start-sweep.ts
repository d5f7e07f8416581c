// Starts a sweep of the New Run page: writes its file into the workspace, runs `ragen sweep` as a task, and opens the
// Sweep page.
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as vscode from 'vscode';
import type { Host } from '../host-services';
import { withProgress } from '../notifications';
import { sweepSources } from '../sweeps/sweep-list';
import { runSweepTask } from '../sweeps/sweep-task';

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
    const sweeps = join(folder, sweepSources);
    await mkdir(sweeps, { recursive: true });
    const free = freeName(sweeps, name);
    const file = join(sweeps, `${free}.yaml`);
    await writeFile(file, text(free), { flag: 'wx' });
    await runSweepTask(host, { workspace: folder, file, jobs });
    host.sweeps.show(folder, free);
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
