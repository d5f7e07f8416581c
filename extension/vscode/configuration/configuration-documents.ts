// Resolved configurations as read-only YAML documents under a separate URI scheme. The configuration of a run is read
// from its manifest. The CLI resolves the configuration in a file. Whenever a YAML file is saved, the CLI resolves the
// files of all open documents again. The configurations of two runs are compared in VS Code's diff editor.
import { basename, dirname, extname, join } from 'node:path';
import * as vscode from 'vscode';
import { z } from 'zod';
import { jsonOrNothing } from '../../common/json';
import { manifestIn } from '../../run-data/run-manifest';
import { runFiles } from '../../run-data/run-file-names';
import { readRunFile } from '../../node/read-run-file';
import type { Run } from '../runs/run-store';
import { yamlOf } from './configuration-text';

/**
 * URI scheme of the documents. The URI's path is displayed; its query contains the run folder or the configuration
 * file.
 */
const scheme = 'ragen-configuration';

type Source = { run: string } | { file: string };

const uriOf = (path: string, source: Source): vscode.Uri =>
  vscode.Uri.from({ scheme, path, query: JSON.stringify(source) });

/** URI of a run's resolved configuration. */
export const runConfigurationUri = ({ folder, summary }: Run): vscode.Uri =>
  uriOf(`/${summary.name.replaceAll('/', '∕')}.yaml`, { run: folder });

/** URI of the resolved form of a configuration file. */
export const resolvedFileUri = (file: string): vscode.Uri =>
  uriOf(`/${basename(file, extname(file))}.resolved.yaml`, { file });

/** Schema of what `ragen config --resolved --json` prints, limited to the displayed fields. */
export const resolvedConfigurationSchema = z.object({
  sources: z.array(z.string()),
  config: z.record(z.string(), z.unknown()),
  ignored: z.array(z.object({ key: z.string(), reason: z.string() })),
});
export type ResolvedConfiguration = z.infer<typeof resolvedConfigurationSchema>;

/**
 * Provides the documents of resolved configurations until disposed of. `resolve` calls the CLI, which resolves a
 * configuration file.
 */
export function serveConfigurations(resolve: (file: string) => Promise<ResolvedConfiguration>): vscode.Disposable {
  const changed = new vscode.EventEmitter<vscode.Uri>();
  const provider = vscode.workspace.registerTextDocumentContentProvider(scheme, {
    onDidChange: changed.event,
    async provideTextDocumentContent({ query }) {
      const source = JSON.parse(query) as Source;
      if ('file' in source) return textOf(await resolve(source.file), dirname(source.file));
      const manifest = jsonOrNothing((await readRunFile(source.run, runFiles.manifest)).toString('utf8'));
      return yamlOf(manifestIn(basename(source.run)).parse(manifest).config);
    },
  });
  // A configuration may extend any other configuration, so all open documents are resolved again.
  const saved = vscode.workspace.onDidSaveTextDocument(({ languageId }) => {
    if (languageId !== 'yaml') return;
    for (const { uri } of vscode.workspace.textDocuments)
      if (uri.scheme === scheme && 'file' in (JSON.parse(uri.query) as Source)) changed.fire(uri);
  });
  return vscode.Disposable.from(provider, saved, changed);
}

function textOf({ sources, config, ignored }: ResolvedConfiguration, folder: string): string {
  const inside = (source: string): boolean => dirname(source) === folder;
  const names = sources.map(source =>
    inside(source) ? basename(source) : join(basename(dirname(source)), basename(source)),
  );
  return yamlOf(config, [`Composed of ${names.join(', ')}.`, ...ignored.map(({ key, reason }) => `${key} ${reason}.`)]);
}
