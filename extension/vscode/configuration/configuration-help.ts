// Editor support for run configurations: completion of keys, values and names; hovers; diagnostics while typing, with
// quick fixes; code lenses. No YAML extension is required. A YAML extension, if installed, finds the same schema in
// package.json (yamlValidation). Other YAML files are ignored.
import { join } from 'node:path';
import * as vscode from 'vscode';
import { schemaAt, type JsonSchema } from '../../common/json-schema';
import { environmentFiles } from '../environments/environment-files';
import { unlinked } from '../plain-text';
import type { KeyDiagnostic, Problems } from './configuration-problems';
import { isConfigurationDocument, isCompleteConfiguration } from './configuration-commands';
import { mistakesIn, type Mistake } from './configuration-mistakes';
import { builtInEnvironments, configurations, models, tags, type Named, type NameSources } from './configuration-names';
import {
  defaultText,
  describeKey,
  isMapSchema,
  keysAt,
  namedValues,
  readConfigurationSchema,
  type KeyPath,
} from './configuration-schema';
import { gapAt, locationAt, type YamlGap } from './yaml-locations';

const selector: vscode.DocumentSelector = { language: 'yaml', scheme: 'file' };
/** Milliseconds between a change of a document and its diagnostics. */
const pauseMs = 250;

/** Registers all providers. The schema is read when the first configuration is opened. */
export function addConfigurationHelp(extensionPath: string, problems: Problems): vscode.Disposable {
  let read: JsonSchema | undefined;
  const schema = (): JsonSchema =>
    (read ??= readConfigurationSchema(join(extensionPath, 'media', 'configuration.schema.json')));
  const lenses: vscode.CodeLensProvider = {
    provideCodeLenses: document => (isCompleteConfiguration(document) ? lensesOf(document.uri) : []),
  };
  return vscode.Disposable.from(
    vscode.languages.registerCompletionItemProvider(selector, completion(extensionPath, schema), ' ', '[', ','),
    vscode.languages.registerHoverProvider(selector, hover(extensionPath, schema)),
    vscode.languages.registerCodeLensProvider(selector, lenses),
    vscode.languages.registerCodeActionsProvider(selector, quickFixes(schema), {
      providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
    }),
    watchMistakes(problems, schema),
  );
}

function lensesOf(uri: vscode.Uri): vscode.CodeLens[] {
  const top = new vscode.Range(0, 0, 0, 0);
  const lens = (title: string, command: string, tooltip: string) =>
    new vscode.CodeLens(top, { title, command, tooltip, arguments: [uri] });
  return [
    lens(vscode.l10n.t('▷ Start run'), 'ragen.startConfiguration', vscode.l10n.t('Start a run with this file')),
    lens(vscode.l10n.t('Check'), 'ragen.checkConfiguration', vscode.l10n.t('Validate this file with the trainer')),
    lens(
      vscode.l10n.t('Resolved configuration'),
      'ragen.showResolvedConfiguration',
      vscode.l10n.t('This file merged with the configurations it extends'),
    ),
  ];
}

function completion(extensionPath: string, schema: () => JsonSchema): vscode.CompletionItemProvider {
  return {
    async provideCompletionItems(document, position) {
      if (!isConfigurationDocument(document)) return [];
      const text = document.getText();
      const gap = gapAt(text, document.offsetAt(position));
      if (!gap) return [];
      const range = new vscode.Range(document.positionAt(gap.from), document.positionAt(gap.to));
      if (otherHelps(document))
        return (await namesAt(gap.path, text, sourcesOf(extensionPath, document)))?.map(name => nameItem(name, range));
      const keyed = gap.part === 'key' || isMapAt(schema(), gap.path);
      if (keyed) return keyItems(schema(), gap, range, document);
      const names = await namesAt(gap.path, text, sourcesOf(extensionPath, document));
      return names ? names.map(name => nameItem(name, range)) : valueItems(schema(), gap.path, range);
    },
  };
}

const isMapAt = (schema: JsonSchema, path: KeyPath): boolean => keysAt(schema, path).length > 0;

function keyItems(
  schema: JsonSchema,
  { path, present, flow }: YamlGap,
  range: vscode.Range,
  document: vscode.TextDocument,
): vscode.CompletionItem[] {
  const colon = /^\s*:/.test(document.getText(new vscode.Range(range.end, document.lineAt(range.end).range.end)));
  const keys = keysAt(schema, path).filter(([key, { deprecated }]) => !deprecated && !present.includes(key));
  return keys.map(([key, child], order) => {
    const item = new vscode.CompletionItem(key, vscode.CompletionItemKind.Property);
    item.range = range;
    item.sortText = String(order).padStart(4, '0');
    item.documentation = new vscode.MarkdownString(describeKey([...path, key], child));
    if (child.default !== undefined && !isMapSchema(child)) item.detail = defaultText(child);
    const isMap = isMapSchema(child) && !flow;
    if (!colon) item.insertText = new vscode.SnippetString(isMap ? `${key}:\n  $0` : `${key}: $0`);
    if (!colon && (isMap || namedValues(child).length > 0))
      item.command = { command: 'editor.action.triggerSuggest', title: '' };
    return item;
  });
}

function valueItems(schema: JsonSchema, path: KeyPath, range: vscode.Range): vscode.CompletionItem[] {
  const at = schemaAt(schema, path);
  if (!at) return [];
  const fallback = at.default === undefined || typeof at.default === 'object' ? [] : [defaultText(at)];
  return [...new Set([...namedValues(at), ...fallback])].map((value, order) => {
    const description = fallback.includes(value) ? vscode.l10n.t('default') : undefined;
    const item = new vscode.CompletionItem({ label: value, description }, vscode.CompletionItemKind.EnumMember);
    item.range = range;
    item.sortText = String(order).padStart(4, '0');
    item.documentation = new vscode.MarkdownString(describeKey(path, at));
    return item;
  });
}

function nameItem({ name, detail }: Named, range: vscode.Range): vscode.CompletionItem {
  const item = new vscode.CompletionItem({ label: name, description: detail }, vscode.CompletionItemKind.Reference);
  item.range = range;
  return item;
}

/** Returns the valid names for the value at a path, or undefined if the value is not a name. */
async function namesAt(path: KeyPath, text: string, sources: NameSources): Promise<Named[] | undefined> {
  const key = path.filter(part => typeof part === 'string').join('.');
  if (key === 'defaults') return configurations(sources);
  if (key === 'model_path') return models(sources);
  if (/^es_manager\.(train|val)\.env_configs\.tags$/.test(key)) return tags(text, sources);
  if (!/^custom_envs\.[^.]+\.env_type$/.test(key)) return undefined;
  const own = (await environmentFiles()).map(({ uri }) => vscode.workspace.asRelativePath(uri, false));
  return [...own.map(name => ({ name, detail: '' })), ...(await builtInEnvironments(sources))];
}

function hover(extensionPath: string, schema: () => JsonSchema): vscode.HoverProvider {
  return {
    async provideHover(document, position) {
      if (!isConfigurationDocument(document) || otherHelps(document)) return undefined;
      const text = document.getText();
      const location = locationAt(text, document.offsetAt(position));
      if (!location) return undefined;
      const range = new vscode.Range(document.positionAt(location.from), document.positionAt(location.to));
      const names =
        location.part === 'value' ? await namesAt(location.path, text, sourcesOf(extensionPath, document)) : [];
      const named = names?.find(({ name, detail }) => name === location.text && detail !== '');
      const at = schemaAt(schema(), location.path);
      if (named) return new vscode.Hover(namedText(named), range);
      return at && new vscode.Hover(new vscode.MarkdownString(describeKey(location.path, at)), range);
    },
  };
}

/** Formats a name and its description as Markdown, both escaped. */
const namedText = ({ name, detail }: Named): vscode.MarkdownString =>
  new vscode.MarkdownString('**').appendText(unlinked(name)).appendMarkdown('** · ').appendText(unlinked(detail));

function sourcesOf(extensionPath: string, { uri }: vscode.TextDocument): NameSources {
  return { extensionPath, workspace: vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? '', file: uri.fsPath };
}

function quickFixes(schema: () => JsonSchema): vscode.CodeActionProvider {
  return {
    provideCodeActions(document, _, { diagnostics }) {
      const own = diagnostics.filter(({ source }) => source === 'RAGEN');
      if (own.length === 0 || !isConfigurationDocument(document)) return [];
      const mistakes = mistakesIn(document.getText(), schema());
      return own.flatMap(diagnostic => {
        const from = document.offsetAt(diagnostic.range.start);
        const mistake = mistakes.find(
          ({ instead, key, from: at }) => instead && at === from && key === diagnostic.code,
        );
        if (mistake?.instead === undefined) return [];
        const title = vscode.l10n.t('Change to {0}', mistake.instead);
        const fix = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
        fix.edit = new vscode.WorkspaceEdit();
        fix.edit.replace(document.uri, rangeOf(document, mistake), mistake.instead);
        fix.diagnostics = [diagnostic];
        fix.isPreferred = true;
        return [fix];
      });
    },
  };
}

/** Updates the diagnostics of open documents after each change, with a delay. */
function watchMistakes(problems: Problems, schema: () => JsonSchema): vscode.Disposable {
  const waiting = new Map<string, NodeJS.Timeout>();
  const look = (document: vscode.TextDocument): void => {
    if (document.languageId !== 'yaml' || document.uri.scheme !== 'file') return;
    const own = isConfigurationDocument(document) && !otherHelps(document);
    const mistakes = own ? mistakesIn(document.getText(), schema()) : [];
    problems.see(
      document.uri,
      mistakes.map(mistake => diagnosticOf(document, mistake)),
    );
  };
  const later = (document: vscode.TextDocument): void => {
    const key = document.uri.toString();
    clearTimeout(waiting.get(key));
    waiting.set(
      key,
      setTimeout(() => waiting.delete(key) && look(document), pauseMs),
    );
  };
  vscode.workspace.textDocuments.forEach(look);
  return vscode.Disposable.from(
    vscode.workspace.onDidOpenTextDocument(look),
    vscode.workspace.onDidChangeTextDocument(({ document }) => later(document)),
    vscode.workspace.onDidCloseTextDocument(({ uri }) => problems.see(uri, [])),
    { dispose: () => waiting.forEach(clearTimeout) },
  );
}

/**
 * Whether the YAML extension already provides help for a file. Its help covers only `*.ragen.yaml` and `*.ragen.yml`,
 * because package.json assigns the schema to no other files.
 */
const otherHelps = ({ fileName }: vscode.TextDocument): boolean =>
  /\.ragen\.ya?ml$/.test(fileName) && vscode.extensions.getExtension('redhat.vscode-yaml') !== undefined;

const rangeOf = (document: vscode.TextDocument, { from, to }: Mistake): vscode.Range =>
  new vscode.Range(document.positionAt(from), document.positionAt(to));

function diagnosticOf(document: vscode.TextDocument, mistake: Mistake): KeyDiagnostic {
  const { Error, Hint } = vscode.DiagnosticSeverity;
  const { message, idle, key } = mistake;
  const diagnostic = new vscode.Diagnostic(rangeOf(document, mistake), message, idle ? Hint : Error);
  diagnostic.source = 'RAGEN';
  if (idle) diagnostic.tags = [vscode.DiagnosticTag.Unnecessary];
  return Object.assign(diagnostic, { code: key });
}
