// Environments in the Test Explorer: one item per environment file of the workspace. After a test run, the item's
// children are the checks of the contract. Failures are also shown as diagnostics until the file is saved. A diagnostic
// is at the line of the failure or, if this line is unknown, at the definition of the environment.
import { dirname, relative } from 'node:path';
import * as vscode from 'vscode';
import type { ContractCheck, ContractReport } from '../../protocol/environment-tools';
import { definitionIn, environmentFiles, mayBeEnvironment } from './environment-files';
import { askEnvironmentCli } from '../processes/environment-cli';
import type { CliInvocation } from '../processes/cli-command';

export class EnvironmentChecks implements vscode.Disposable {
  private readonly controller = vscode.tests.createTestController(
    'ragen.environments',
    vscode.l10n.t('RAGEN environments'),
  );
  private readonly collection = vscode.languages.createDiagnosticCollection('ragen-checks');
  /** For each environment file, the URIs of the files that have diagnostics from its check. */
  private readonly marked = new Map<string, vscode.Uri[]>();
  private readonly subscriptions: vscode.Disposable[] = [this.controller, this.collection];

  constructor(private readonly cliFor: (cwd: string) => Promise<CliInvocation>) {
    const { controller } = this;
    controller.resolveHandler = async item => {
      if (!item) await this.discover();
    };
    controller.refreshHandler = () => this.discover();
    const run = async (request: vscode.TestRunRequest, token: vscode.CancellationToken) =>
      void (await this.run(request, token));
    const profile = controller.createRunProfile(vscode.l10n.t('Check'), vscode.TestRunProfileKind.Run, run, true);
    const watcher = vscode.workspace.createFileSystemWatcher('**/*.ts');
    this.subscriptions.push(
      profile,
      watcher,
      watcher.onDidCreate(uri => void this.update(uri)),
      watcher.onDidChange(uri => void this.update(uri)),
      watcher.onDidDelete(uri => this.forget(uri)),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => this.unmark(uri)),
    );
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
  }

  /** Checks a file's environment as a test run and returns the report. */
  async check(uri: vscode.Uri): Promise<ContractReport | undefined> {
    const item = this.itemOf(uri, (await definitionIn(uri)) ?? 0);
    const cancel = new vscode.CancellationTokenSource();
    const [report] = await this.run(new vscode.TestRunRequest([item]), cancel.token);
    return report;
  }

  private async discover(): Promise<void> {
    const files = await environmentFiles();
    const items = files.map(({ uri, line }) => this.itemOf(uri, line));
    this.controller.items.replace(items);
  }

  private async update(uri: vscode.Uri): Promise<void> {
    if (!mayBeEnvironment(uri)) return;
    const line = await definitionIn(uri);
    if (line === undefined) this.forget(uri);
    else this.itemOf(uri, line);
  }

  private forget(uri: vscode.Uri): void {
    this.controller.items.delete(uri.toString());
    this.unmark(uri);
  }

  private itemOf(uri: vscode.Uri, line: number): vscode.TestItem {
    const { items } = this.controller;
    const item =
      items.get(uri.toString()) ??
      this.controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri);
    item.range = lineRange(line);
    items.add(item);
    return item;
  }

  private async run(request: vscode.TestRunRequest, token: vscode.CancellationToken): Promise<ContractReport[]> {
    const wanted = new Set(
      (request.include ?? [...this.controller.items].map(([, item]) => item)).map(item => item.parent ?? item),
    );
    const excluded = new Set(request.exclude ?? []);
    const run = this.controller.createTestRun(request);
    const items = [...wanted].filter(item => !excluded.has(item));
    for (const item of items) run.enqueued(item);
    const reports: ContractReport[] = [];
    for (const item of items) {
      if (token.isCancellationRequested) run.skipped(item);
      else {
        const report = await this.runItem(run, item, token);
        if (report) reports.push(report);
      }
    }
    run.end();
    return reports;
  }

  private async runItem(
    run: vscode.TestRun,
    item: vscode.TestItem,
    token: vscode.CancellationToken,
  ): Promise<ContractReport | undefined> {
    const uri = item.uri!;
    run.started(item);
    this.unmark(uri);
    const begun = Date.now();
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    try {
      if (!vscode.workspace.isTrusted)
        throw new Error(vscode.l10n.t('The workspace is not trusted, so its code cannot run.'));
      const cwd = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? dirname(uri.fsPath);
      const report = await askEnvironmentCli<ContractReport>(
        await this.cliFor(cwd),
        ['check', relative(cwd, uri.fsPath).replaceAll('\\', '/')],
        abort.signal,
      );
      this.showResult(run, item, report, Date.now() - begun);
      return report;
    } catch (error) {
      if (token.isCancellationRequested) run.skipped(item);
      else run.errored(item, new vscode.TestMessage(error instanceof Error ? error.message : String(error)));
      return undefined;
    }
  }

  /** Shows the results in three places: as child items, in the output of the test run, and as diagnostics. */
  private showResult(run: vscode.TestRun, item: vscode.TestItem, { checks }: ContractReport, duration: number): void {
    const diagnostics = new Map<string, { uri: vscode.Uri; of: vscode.Diagnostic[] }>();
    item.children.replace(checks.map((check, order) => this.childOf(item, check, order)));
    for (const check of checks) {
      const child = item.children.get(`${item.id} ${check.name}`)!;
      run.appendOutput(
        `${check.state === 'failed' ? '✗' : check.state === 'passed' ? '✓' : '–'} ${check.name}: ${check.evidence}\r\n`,
      );
      if (check.state === 'passed') run.passed(child);
      else if (check.state === 'skipped') run.skipped(child);
      else {
        const { uri, range } = locationOf(check, item);
        const message = new vscode.TestMessage(check.evidence);
        message.location = new vscode.Location(uri, range);
        run.failed(child, message);
        const diagnostic = new vscode.Diagnostic(
          range,
          `${check.name}: ${check.evidence}`,
          vscode.DiagnosticSeverity.Error,
        );
        diagnostic.source = 'RAGEN';
        const known = diagnostics.get(uri.toString());
        if (known) known.of.push(diagnostic);
        else diagnostics.set(uri.toString(), { uri, of: [diagnostic] });
      }
    }
    for (const { uri, of } of diagnostics.values()) this.collection.set(uri, of);
    this.marked.set(
      item.uri!.toString(),
      [...diagnostics.values()].map(({ uri }) => uri),
    );
    const failed = checks.filter(({ state }) => state === 'failed');
    if (failed.length === 0) run.passed(item, duration);
    else run.failed(item, new vscode.TestMessage(failed.map(({ name }) => name).join('\n')), duration);
  }

  private childOf(item: vscode.TestItem, check: ContractCheck, order: number): vscode.TestItem {
    const child = this.controller.createTestItem(`${item.id} ${check.name}`, check.name, item.uri);
    child.range = item.range;
    child.description = check.state === 'skipped' ? check.evidence : undefined;
    child.sortText = String(order).padStart(3, '0');
    return child;
  }

  /** Removes all diagnostics that the check of a file produced, including diagnostics in other files. */
  private unmark(uri: vscode.Uri): void {
    for (const uriOfCheck of this.marked.get(uri.toString()) ?? [uri]) this.collection.delete(uriOfCheck);
    this.marked.delete(uri.toString());
  }
}

/** Returns the location of a failed check or, if this location is unknown, that of the environment's definition. */
function locationOf({ at }: ContractCheck, item: vscode.TestItem): { uri: vscode.Uri; range: vscode.Range } {
  const [, file, line] = /^(.*):(\d+)$/.exec(at ?? '') ?? [];
  if (file === undefined) return { uri: item.uri!, range: item.range ?? lineRange(0) };
  return { uri: vscode.Uri.file(file), range: lineRange(Number(line) - 1) };
}

/** Returns the range of a complete line; VS Code clips the range at the line's end. */
const lineRange = (line: number): vscode.Range => new vscode.Range(line, 0, line, 1000);
