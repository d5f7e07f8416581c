// Untrusted model folders: small complete folders with one to three mutations are loaded in every way of the product,
// in a process with limits on time and memory. Each folder must load or be refused with one sentence; the process must
// not die or hang.
import { join } from 'node:path';
import type { FuzzedTarget } from './fuzz-watch';
import { FuzzWatch } from './fuzz-watch';
import { modelFolderTarget } from './model-folder-target';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

/** Number of folders at full scale; `foldersInCi` is the number in CI. */
export const wholeFolders = 1500;
export const foldersInCi = 60;
/**
 * Folders per process. A new process is started regularly because onnxruntime sessions are freed only by garbage
 * collection.
 */
const foldersAtOnce = 200;

/**
 * Loads this number of folders. `entry` is the built model-folders-process. The seed and the number of a folder
 * determine its content.
 */
export async function tryModelFolders(
  folders: number,
  seed: number,
  entry: string,
  say: (line: string) => void,
): Promise<FuzzedTarget[]> {
  const all: FuzzedTarget[] = [];
  for (let from = 0; from < folders; from += foldersAtOnce) {
    const watch = new FuzzWatch(entry);
    try {
      const own = seed + 1_000_000 * (from / foldersAtOnce);
      const one = await watch.fuzz(modelFolderTarget, own, Math.min(foldersAtOnce, folders - from));
      all.push(one);
      say(`${one.inputs} folders, ${one.refused} refused, ${one.seconds.toFixed(1)} s`);
      for (const { number, fault, message } of one.findings)
        say(`${fault} with seed ${own}, folder ${number}: ${message}`);
    } finally {
      await watch.end();
    }
  }
  return all;
}

/** The part `model-folders` of `npm run torture`. @throws if a folder violates a guarantee */
export async function modelFolders(scale: TortureScale): Promise<void> {
  const entry = join(__dirname, 'model-folders-process.cjs');
  const all = await tryModelFolders(scaled(wholeFolders, scale), scale.seed, entry, scale.say);
  const sum = (of: (one: FuzzedTarget) => number): number => all.reduce((total, one) => total + of(one), 0);
  const slowest = Math.round(Math.max(...all.map(one => one.slowest)));
  const row = ['model folders', sum(one => one.inputs), sum(one => one.refused), slowest, sum(one => one.broken)];
  console.log(table(['loaded', 'folders', 'refused somewhere', 'slowest, ms', 'broken'], [row]));
  const findings = all.flatMap(one => one.findings);
  if (findings.length > 0) throw new Error(`${findings.length} kinds of folders violated a guarantee`);
}
