// Registers all features of reasoning traces.
import * as vscode from 'vscode';
import { registerActions, report } from '../command';
import type { Host } from '../host-services';
import { EnvironmentLenses } from '../environments/environment-lenses';
import { PromptTimes } from '../run-files/episodes/prompt-times';
import { traceCommands } from './commands/trace-commands';
import type { TraceServices } from './commands/trace-services';
import { TraceDocuments } from './trace-documents';
import { TraceHover } from './trace-hover';
import { TraceLenses } from './trace-lenses';
import { TracePictures } from './trace-pictures';
import { TraceOverlay } from './trace-overlay';
import { TraceScores } from './trace-scores';
import { TraceStructure } from './trace-structure';
import { traceLanguage, traceScheme } from './trace-uri';

/**
 * Registers the documents of traces and their language features, the commands, and the statistics that are shown in the
 * source code of environments.
 */
export function registerTraces(context: vscode.ExtensionContext, host: Host): void {
  const { store, picker, trust, inspections, log, cliFor } = host;
  const documents = new TraceDocuments(store, context.extensionPath, log);
  const scores = new TraceScores(inspections, {
    onError: error => void report({ log }, error),
    log: message => log.info(message),
  });
  const overlay = new TraceOverlay(documents, scores, context.workspaceState);
  const structure = new TraceStructure(documents);
  const lenses = new TraceLenses(documents, new PromptTimes());
  const pictures = new TracePictures(documents);
  const services: TraceServices = { documents, overlay, scores, picker, trust, cliFor };
  const commands = Object.entries(traceCommands).map(
    ([id, command]) => [id, (argument: unknown, other: unknown) => command(services, argument, other)] as const,
  );
  const selector: vscode.DocumentSelector = { scheme: traceScheme };
  const { languages } = vscode;
  context.subscriptions.push(
    documents,
    scores,
    overlay,
    new EnvironmentLenses(store, documents.heads),
    languages.registerFoldingRangeProvider(selector, structure),
    languages.registerDocumentSymbolProvider(selector, structure),
    languages.registerHoverProvider(selector, new TraceHover(documents, scores)),
    lenses,
    pictures,
    languages.registerCodeLensProvider(selector, pictures),
    languages.registerCodeLensProvider(selector, lenses),
    vscode.workspace.onDidOpenTextDocument(document => {
      if (document.uri.scheme === traceScheme && document.languageId !== traceLanguage)
        void languages.setTextDocumentLanguage(document, traceLanguage);
    }),
    registerActions(host, Object.fromEntries(commands)),
  );
}
