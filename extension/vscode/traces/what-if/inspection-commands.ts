// Model inspection of runs: the inspection processes, the what-if command, and the Live pages with their command.
import * as vscode from 'vscode';
import { report } from '../../runs/commands/commands';
import type { CliInvocation } from '../../processes/environment-cli';
import { Inspections } from '../../processes/inspection-process';
import { liveKind } from '../../pages/live-panel';
import { PagePanels } from '../../pages/page-panels';
import type { RunArgument, RunPicker } from '../../runs/run-picker';
import type { RunStore } from '../../runs/run-store';
import type { RunTrust } from '../../runs/run-trust-dialog';
import { isActive } from '../../runs/run-format';
import { WhatIfs } from './what-if-command';

export interface InspectionNeeds {
  trust: RunTrust;
  store: RunStore;
  picker: RunPicker;
  log: vscode.LogOutputChannel;
  /** Returns the CLI for a workspace folder. */
  terminal(cwd: string): Promise<CliInvocation>;
}

/** Disposed of with the extension. */
export interface Inspection extends vscode.Disposable {
  inspections: Inspections;
  lives: PagePanels;
}

/** Registers the commands and the pages. Processes start on the first request. */
export function addInspection(
  extensionUri: vscode.Uri,
  { store, picker, trust, log, terminal }: InspectionNeeds,
): Inspection {
  const inspections = new Inspections({
    terminal,
    refusal: () =>
      vscode.workspace.isTrusted
        ? undefined
        : vscode.l10n.t('Inspection runs code of this workspace, which is not trusted: trust it first.'),
    log: line => log.info(`inspection: ${line}`),
  });
  const whatIfs = new WhatIfs(inspections, trust, store);
  const call = (command: string) => (folder: string) => void vscode.commands.executeCommand(command, folder);
  const actions = {
    episodes: call('ragen.openEpisodes'),
    pause: call('ragen.pause'),
    resume: call('ragen.resume'),
    log: call('ragen.showLog'),
  };
  const lives = new PagePanels(liveKind(store, actions), extensionUri, store);
  const commands: Record<string, (argument: unknown) => Promise<void>> = {
    'ragen.whatIf': argument => whatIfs.ask(argument),
    'ragen.watchLive': async argument => {
      const run = await picker.pick(argument as RunArgument, isActive, vscode.l10n.t('No run is running.'));
      if (run) lives.show(run, vscode.ViewColumn.Active);
    },
  };
  const registered = Object.entries(commands).map(([id, command]) =>
    vscode.commands.registerCommand(id, async (argument: unknown) => {
      try {
        await command(argument);
      } catch (error) {
        await report({ log }, error);
      }
    }),
  );
  const all = vscode.Disposable.from(inspections, whatIfs, lives, ...registered);
  return { inspections, lives, dispose: () => all.dispose() as void };
}
