// The code of plug-ins in a run folder, `plugins/<version>/`: the bundle, and the sources from which it was built. It
// records which code computed the steps of a run. It is never executed: a resume builds the files of the workspace, as
// it does with environments, and reports files that have changed.
import { dirname } from 'node:path';
import { pluginFile, pluginFiles } from '../../run-data/run-file-names';
import type { PluginCode, PluginDescription } from '../../protocol/plugin-link';
import type { KeptPlugin } from '../../run-data/plugin-snapshot';
import { fileSystem, makeFolder, replaceFile } from '../../node/files';
import { hasRunFile } from '../../node/read-run-file';
import { json } from './run-documents';
import type { RunFolder } from './run-folder';
import { sourceSnapshots } from './source-snapshots';

/** Stores a version of a plug-in's code, unless it is stored already. */
export async function keepPlugin(
  folder: RunFolder,
  { version, source, bundle }: PluginCode,
  { kind, name }: Pick<PluginDescription, 'kind' | 'name'>,
): Promise<void> {
  const file = (part: string) => folder.file(pluginFile(version, part));
  if (hasRunFile(folder.path, pluginFile(version, pluginFiles.bundle))) return;
  const { root, sources } = sourceSnapshots(source, bundle);
  const about: KeptPlugin = {
    ...{ version, kind, name, root },
    kept: new Date().toISOString(),
    entry: sources[0].name,
    sources: sources.map(each => each.name),
  };
  // The bundle is written last, so if the bundle exists, the other files are complete.
  const files = [
    ...sources.map(each => ({ path: file(`${pluginFiles.sources}/${each.name}`), text: each.text })),
    { path: file(pluginFiles.about), text: json(about) },
    { path: file(pluginFiles.bundle), text: bundle },
  ];
  for (const { path, text } of files) {
    await makeFolder(dirname(path), fileSystem, folder.path);
    await replaceFile(path, text);
  }
}
