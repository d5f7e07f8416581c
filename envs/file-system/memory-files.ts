// A file system in memory: texts by absolute path. Folders exist if they contain a file. A path is resolved against the
// root, so that `..` cannot leave it, and nothing reaches the machine's files. Failures are ToolErrors for the model.
import { ToolError } from '../api/tools/tool';

/** Limits that keep an episode small, however the model behaves. */
const mostFiles = 200;
const longestFile = 10_000;
const longestPath = 200;

export class MemoryFiles {
  private readonly files: Map<string, string>;

  constructor(files: Iterable<readonly [path: string, text: string]> = []) {
    this.files = new Map(files);
  }

  /** All paths with their texts, in the order of the paths. */
  entries(): [path: string, text: string][] {
    return [...this.files].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** Whether both hold the same files. */
  equals(other: MemoryFiles): boolean {
    return JSON.stringify(this.entries()) === JSON.stringify(other.entries());
  }

  /** Returns the names in a folder, sorted; names of folders end with `/`. */
  list(path: string): string[] {
    const folder = resolved(path) === '/' ? '/' : `${resolved(path)}/`;
    const below = [...this.files.keys()].filter(each => each.startsWith(folder));
    if (below.length === 0 && folder !== '/') throw new ToolError(`there is no folder ${quoted(path)}`);
    const names = below.map(each => each.slice(folder.length)).map(rest => rest.replace(/\/.*/s, '/'));
    return [...new Set(names)].sort();
  }

  read(path: string): string {
    const text = this.files.get(resolved(path));
    if (text === undefined) throw new ToolError(`there is no file ${quoted(path)}`);
    return text;
  }

  write(path: string, text: string): void {
    const file = resolved(path);
    if (text.length > longestFile) throw new ToolError(`the text has more than ${longestFile} characters`);
    if (this.isFolder(file)) throw new ToolError(`${quoted(path)} is a folder`);
    const parents = file.split('/').slice(1, -1);
    parents.reduce((parent, name) => {
      const folder = `${parent}/${name}`;
      if (this.files.has(folder)) throw new ToolError(`${quoted(folder)} is a file, not a folder`);
      return folder;
    }, '');
    if (!this.files.has(file) && this.files.size >= mostFiles)
      throw new ToolError(`there are already ${mostFiles} files`);
    this.files.set(file, text);
  }

  move(from: string, to: string): void {
    const text = this.read(from);
    this.files.delete(resolved(from));
    try {
      this.write(to, text);
    } catch (error) {
      this.files.set(resolved(from), text);
      throw error;
    }
  }

  remove(path: string): void {
    if (!this.files.delete(resolved(path))) throw new ToolError(`there is no file ${quoted(path)}`);
  }

  /** Returns the paths of the files that contain a text, sorted. */
  search(text: string): string[] {
    return this.entries().flatMap(([path, content]) => (content.includes(text) ? [path] : []));
  }

  private isFolder(path: string): boolean {
    return path === '/' || [...this.files.keys()].some(each => each.startsWith(`${path}/`));
  }
}

const quoted = (path: string): string => JSON.stringify(path.slice(0, longestPath));

/** Returns the absolute path that a path names. */
function resolved(path: string): string {
  if (path.length > longestPath) throw new ToolError(`the path has more than ${longestPath} characters`);
  const parts: string[] = [];
  for (const part of path.split('/'))
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  return `/${parts.join('/')}`;
}
