// Reads the sources of a bundle from the bundle's source map. Sources of packages are omitted. Names are relative to
// the deepest folder that contains all sources.
import { dirname, relative, resolve, sep } from 'node:path';
import { scoredEntry } from '../../protocol/environment-link';

export interface SourceSnapshot {
  /** Path relative to `root`, with forward slashes. */
  name: string;
  text: string;
}

/**
 * Returns the sources of a bundle; the first one is the entry.
 * @param source absolute path of the entry; the paths in the source map are relative to the entry's folder
 */
export function sourceSnapshots(source: string, bundle: string): { root: string; sources: SourceSnapshot[] } {
  const comment = bundle.slice(bundle.lastIndexOf('base64,') + 'base64,'.length);
  const { sources, sourcesContent } = JSON.parse(Buffer.from(comment, 'base64').toString('utf8')) as {
    sources: string[];
    sourcesContent: string[];
  };
  const folder = dirname(source);
  const found = sources
    .map((name, i) => ({ name, path: resolve(folder, name), text: sourcesContent[i] }))
    .filter(({ name }) => name !== scoredEntry);
  const own = found.filter(({ path }) => path === source || !path.split(sep).includes('node_modules'));
  own.sort((a, b) => Number(b.path === source) - Number(a.path === source));
  const root = own.reduce((above, { path }) => commonFolder(above, dirname(path)), folder);
  return { root, sources: own.map(({ path, text }) => ({ name: relative(root, path).replaceAll(sep, '/'), text })) };
}

function commonFolder(a: string, b: string): string {
  const [x, y] = [a.split(sep), b.split(sep)];
  const end = x.findIndex((part, i) => part !== y[i]);
  return end < 0 ? a : x.slice(0, end).join(sep) || sep;
}
