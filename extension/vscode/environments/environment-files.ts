// Finds the environment files of the workspace, identified by their content: a default export and `defineEnvironment(`.
import * as vscode from 'vscode';
import { readBounded } from '../../node/bounded-file';

/** Maximum number of TypeScript files examined. */
const mostFiles = 3000;
const glob = '**/*.ts';
const excluded = '**/{node_modules,.ragen,.git,dist,out}/**';

/**
 * Returns the 0-based line of the definition in an environment's text, or undefined if the text defines no environment.
 */
export function definitionLine(text: string): number | undefined {
  if (!/^export\s+default\b/m.test(text)) return undefined;
  const lines = text.split('\n');
  const line = lines.findIndex(each => /\bdefineEnvironment\s*\(/.test(each) && !/^\s*(\/\/|\*)/.test(each));
  return line < 0 ? undefined : line;
}

/** Whether a file can be an environment, judged by its path. */
export const mayBeEnvironment = ({ path }: vscode.Uri): boolean =>
  path.endsWith('.ts') && !/\.(d|test|spec)\.ts$/.test(path) && !/\/(node_modules|\.ragen|\.git|dist|out)\//.test(path);

/** Maximum bytes of an examined file. */
const mostBytes = 2 ** 24;

/**
 * Returns the 0-based line of the environment definition in a file; undefined if the file has none or cannot be read.
 */
export async function definitionIn(uri: vscode.Uri): Promise<number | undefined> {
  const text = await readBounded(uri.fsPath, { most: mostBytes, within: null }).catch(() => '');
  return definitionLine(text.toString('utf8'));
}

/** Returns the workspace's environment files, sorted by path. */
export async function environmentFiles(): Promise<{ uri: vscode.Uri; line: number }[]> {
  const uris = (await vscode.workspace.findFiles(glob, excluded, mostFiles)).filter(mayBeEnvironment);
  const found = await Promise.all(uris.map(async uri => ({ uri, line: await definitionIn(uri) })));
  return found
    .filter((each): each is { uri: vscode.Uri; line: number } => each.line !== undefined)
    .sort((a, b) => a.uri.path.localeCompare(b.uri.path));
}
