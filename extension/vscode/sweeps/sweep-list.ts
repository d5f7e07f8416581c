// Finds the sweeps of a workspace folder: those that were started, and the sweep files that can be started. Must not
// import `vscode`.
import { readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { mostYamlBytes } from '../../common/yaml-text';
import { readBounded } from '../../node/bounded-file';
import { isSweepId, sweepFiles, sweepFileSchema, sweepsFolder, type SweepFile } from '../../run-data/sweep-file';
import { SmallFile } from '../run-files/small-file';

/** Folder of sweep files in a workspace, where `ragen sweep` finds them by name. */
export const sweepSources = join('config', 'sweeps');

export interface StartedSweep {
  /** Folder of the sweep. */
  folder: string;
  content: SweepFile;
}

export interface SweepSource {
  /** Absolute path. */
  file: string;
  name: string;
  /** First comment line of the file; empty without one. */
  about: string;
}

/** Returns the sweeps that were started in a workspace folder, the one that changed last first. */
export async function startedSweeps(workspace: string): Promise<StartedSweep[]> {
  const root = join(workspace, sweepsFolder);
  const names = (await namesIn(root)).filter(isSweepId);
  const found = await Promise.all(
    names.map(async name => {
      const folder = join(root, name);
      const content = await new SmallFile(folder, sweepFiles.index, sweepFileSchema).read();
      return content ? [{ folder, content }] : [];
    }),
  );
  return found.flat().sort((a, b) => (a.content.updated < b.content.updated ? 1 : -1));
}

/** Returns the sweep files of a folder by name. */
export async function sweepSourcesIn(folder: string): Promise<SweepSource[]> {
  const names = (await namesIn(folder)).filter(name => /\.ya?ml$/.test(name)).sort();
  return Promise.all(
    names.map(async name => {
      const file = join(folder, name);
      return { file, name: sweepName(file), about: await aboutOf(file) };
    }),
  );
}

/** Returns the id of the sweep of a file. */
export const sweepName = (file: string): string => basename(file).replace(/\.ya?ml$/, '');

const namesIn = (folder: string): Promise<string[]> => readdir(folder).catch(() => []);

async function aboutOf(file: string): Promise<string> {
  try {
    const text = (await readBounded(file, { most: mostYamlBytes, within: null })).toString('utf8');
    return /^#\s*(.*)$/m.exec(text)?.[1].trim() ?? '';
  } catch {
    return ''; // the start of the sweep reports the error
  }
}
