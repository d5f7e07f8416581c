// Configurations from which a run can start: the built-in presets (`media/presets/*.yaml`) and the workspace's YAML
// files with RAGEN's top-level keys. The first comment line of a file is its description.
import { readdir } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import * as vscode from 'vscode';
import { readBounded } from '../../../node/bounded-file';
import { mostYamlBytes, yamlValue } from '../../../common/yaml-text';

export interface Preset {
  /** `--config-name`: the file name without its extension. */
  name: string;
  description: string;
  /** The file of a workspace configuration and its workspace folder; undefined for a built-in preset. */
  own?: { file: string; folder: vscode.WorkspaceFolder };
}

/** Keys that identify a YAML file as a RAGEN configuration. */
const ragenKeys = [
  'defaults',
  'trainer',
  'es_manager',
  'agent_proxy',
  'actor_rollout_ref',
  'algorithm',
  'custom_envs',
  'model_path',
];
const looksLikeRagen = new RegExp(`^(?:${ragenKeys.join('|')})\\s*:`, 'm');
/** Maximum number of YAML files examined. */
const mostFiles = 500;

/**
 * Returns the built-in presets: `quickstart` first, then the others sorted by name. Numbers in names are compared by
 * value, so `_9_2048` precedes `_10_rubikscube`. Files without `defaults` (`sft`) are excluded, because no run can start
 * from them, and so are files that other presets extend (`defaults: [base]`), except `quickstart`.
 */
export async function shippedPresets(extensionPath: string): Promise<Preset[]> {
  const folder = join(extensionPath, 'media', 'presets');
  const names = (await readdir(folder).catch(() => [])).filter(name => extname(name) === '.yaml').sort();
  const texts = await Promise.all(names.map(name => textOf(join(folder, name))));
  const defaults = texts.map(defaultsOf);
  const parts = new Set(defaults.flat());
  const presets = names.map((name, index) => ({ name: basename(name, '.yaml'), description: describe(texts[index]) }));
  const isFirst = ({ name }: Preset): boolean => name === 'quickstart';
  return presets
    .filter((preset, index) => isFirst(preset) || (!parts.has(preset.name) && defaults[index].length > 0))
    .sort((a, b) => Number(isFirst(b)) - Number(isFirst(a)) || a.name.localeCompare(b.name, 'en', { numeric: true }));
}

/** Returns the workspace's configurations, sorted by path. */
export async function workspacePresets(): Promise<Preset[]> {
  const files = await vscode.workspace.findFiles('**/*.{yaml,yml}', '**/{node_modules,.ragen,.git}/**', mostFiles);
  const presets = await Promise.all(files.map(presetOf));
  return presets.filter(preset => preset !== undefined).sort((a, b) => (a.description < b.description ? -1 : 1));
}

async function presetOf(uri: vscode.Uri): Promise<Preset | undefined> {
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  const text = await textOf(uri.fsPath).catch(() => ''); // a file that is too large or not a regular file is skipped
  if (!folder || !looksLikeRagen.test(text)) return undefined;
  const name = basename(uri.fsPath, extname(uri.fsPath));
  return { name, description: vscode.workspace.asRelativePath(uri), own: { file: uri.fsPath, folder } };
}

const textOf = async (file: string): Promise<string> =>
  (await readBounded(file, { most: mostYamlBytes, within: null })).toString('utf8');

/** Returns the first comment line of a YAML text. */
function describe(text: string): string {
  return /^#+\s*(.+)$/m.exec(text.split(/\n(?=[^#\n])/)[0])?.[1].trim() ?? '';
}

/** Returns the names in the `defaults` list of a YAML text. */
function defaultsOf(text: string): string[] {
  const parsed: unknown = yamlValue(text);
  const listed = typeof parsed === 'object' && parsed !== null && 'defaults' in parsed ? parsed.defaults : [];
  return Array.isArray(listed) ? listed.filter(name => typeof name === 'string') : [];
}
