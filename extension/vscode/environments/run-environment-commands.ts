// Commands on the environments of a run: debug them during training, show their line coverage, compare their versions.
// Also registers the diagnostics, lenses and decorations in environment sources.
import * as vscode from 'vscode';
import { registerCommands, type Command } from '../command';
import { compareEnvironments, serveSourceSnapshots } from './compare-environments';
import { CoverageDecorations } from './coverage-decorations';
import { EnvironmentDiagnostics } from './environment-diagnostics';
import { activateDebuggerEarly, debugEnvironments } from './debug-environment';
import type { Host } from '../host-services';
import { notifyBriefly } from '../notifications';
import { anyRun, noRuns } from '../runs/commands/run-checks';
import { isActive } from '../runs/run-format';
import { trusted } from '../workspace-trust';

/** Registers the commands, diagnostics, code lenses and decorations. */
export function registerRunEnvironments(context: vscode.ExtensionContext, host: Host): void {
  const coverage = new CoverageDecorations(host.store);
  context.subscriptions.push(
    coverage,
    new EnvironmentDiagnostics(host.store),
    serveSourceSnapshots(),
    activateDebuggerEarly(host.store),
    registerCommands(host, commandsOn(coverage)),
  );
}

const commandsOn = (coverage: CoverageDecorations): Record<string, Command> => ({
  'ragen.debugEnvironment': host => async argument => {
    if (!trusted()) return;
    const run = await host.picker.pick(argument, isActive, vscode.l10n.t('No run is running.'));
    if (run) await debugEnvironments(host.store, run);
  },
  'ragen.toggleCoverage': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (!run) return;
    const on = await coverage.toggle(run);
    const { name } = run.summary;
    notifyBriefly(
      on
        ? vscode.l10n.t('From the next step on, the sources show the environment coverage of {0}', name)
        : vscode.l10n.t('Environment coverage of {0} is off', name),
      8000,
    );
  },
  'ragen.compareEnvironments': host => async argument => {
    const run = await host.picker.pick(argument, anyRun, noRuns());
    if (run) await compareEnvironments(run);
  },
});
