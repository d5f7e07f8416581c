// Composition root of the reasoning traces: creates their parts and registers them.
import * as vscode from 'vscode';
import { report } from '../runs/commands/commands';
import type { CliInvocation } from '../processes/environment-cli';
import type { RunPicker } from '../runs/run-picker';
import type { RunStore } from '../runs/run-store';
import type { RunTrust } from '../runs/run-trust-dialog';
import { EnvironmentLenses } from '../environments/environment-lenses';
import { PromptTimes } from '../run-files/episodes/prompt-times';
import { traceCommands, type TraceServices } from './commands/trace-commands';
import { TraceDocuments } from './trace-documents';
import { TraceHover } from './trace-hover';
import { TraceLenses } from './trace-lenses';
import { TraceOverlay } from './trace-overlay';
import { TraceScores, type Scorer } from './trace-scores';
import { TraceStructure } from './trace-structure';
import { traceLanguage, traceScheme } from './trace-uri';

/** Dependencies of the traces. */
export interface TraceNeeds {
  store: RunStore;
  picker: RunPicker;
  trust: RunTrust;
  /** If absent, nothing is scored and the overlays show only recorded values. */
  scorer?: Scorer;
  log: vscode.LogOutputChannel;
  /** Returns the CLI for a workspace folder. */
  terminal(cwd: string): Promise<CliInvocation>;
}

/** Registers the documents, their language features, the commands, and the statistics in environment sources. */
export function addTraces(context: vscode.ExtensionContext, needs: TraceNeeds): vscode.Disposable {
  const { store, picker, trust, scorer, log, terminal } = needs;
  const documents = new TraceDocuments(store, context.extensionPath, log);
  const scores = new TraceScores(scorer, {
    onError: error => void report({ log }, error),
    log: message => log.info(message),
  });
  const overlay = new TraceOverlay(documents, scores, context.workspaceState);
  const structure = new TraceStructure(documents);
  const lenses = new TraceLenses(documents, new PromptTimes());
  const services: TraceServices = { documents, overlay, scores, picker, trust, terminal };
  const commands = Object.entries(traceCommands).map(([id, command]) =>
    vscode.commands.registerCommand(id, async (argument: unknown, other: unknown) => {
      try {
        await command(services, argument, other);
      } catch (error) {
        await report({ log }, error);
      }
    }),
  );
  const selector: vscode.DocumentSelector = { scheme: traceScheme };
  const { languages } = vscode;
  return vscode.Disposable.from(
    documents,
    scores,
    overlay,
    new EnvironmentLenses(store, documents.heads),
    languages.registerFoldingRangeProvider(selector, structure),
    languages.registerDocumentSymbolProvider(selector, structure),
    languages.registerHoverProvider(selector, new TraceHover(documents, scores)),
    lenses,
    languages.registerCodeLensProvider(selector, lenses),
    vscode.workspace.onDidOpenTextDocument(document => {
      if (document.uri.scheme === traceScheme && document.languageId !== traceLanguage)
        void languages.setTextDocumentLanguage(document, traceLanguage);
    }),
    ...commands,
  );
}
