// The configurations a run can start from: the shipped presets (`media/presets/*.yaml`) and the workspace's own YAML files that
// look like RAGEN's, told by their top-level keys. A file's first comment line is its description.
import { readdir } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import * as vscode from 'vscode';
import { readBounded } from '../protocol/bounded-file';
import { mostYamlBytes, yamlValue } from '../protocol/yaml-text';

export interface Preset {
  /** `--config-name`: the file's name without its ending. */
  name: string;
  description: string;
  /** The workspace's own file and its folder; undefined for a shipped preset. */
  own?: { file: string; folder: vscode.WorkspaceFolder };
}

/** Keys by which a YAML file is taken for a RAGEN configuration. */
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
/** More YAML files than these are not looked at. */
const mostFiles = 500;

/**
 * Shipped presets, `quickstart` first, else by name and number. Those that others build on (`defaults: [base]`) are parts, and those that
 * build on none are no runs (`sft`).
 */
export async function shippedPresets(extensionPath: string): Promise<Preset[]> {
  const folder = join(extensionPath, 'media', 'presets');
  const names = (await readdir(folder).catch(() => [])).filter(name => extname(name) === '.yaml').sort();
  const texts = await Promise.all(names.map(name => textOf(join(folder, name))));
  const defaults = texts.map(defaultsOf);
  const parts = new Set(defaults.flat());
  const presets = names.map((name, index) => ({ name: basename(name, '.yaml'), description: describe(texts[index]) }));
  const first = (preset: Preset): number => Number(preset.name === 'quickstart');
  return presets
    .filter((preset, index) => !parts.has(preset.name) && defaults[index].length > 0)
    .sort((a, b) => first(b) - first(a) || a.name.localeCompare(b.name, 'en', { numeric: true }));
}

/** The workspace's configurations, by path. */
export async function workspacePresets(): Promise<Preset[]> {
  const files = await vscode.workspace.findFiles('**/*.{yaml,yml}', '**/{node_modules,.ragen,.git}/**', mostFiles);
  const presets = await Promise.all(files.map(presetOf));
  return presets.filter(preset => preset !== undefined).sort((a, b) => (a.description < b.description ? -1 : 1));
}

async function presetOf(uri: vscode.Uri): Promise<Preset | undefined> {
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  const text = await textOf(uri.fsPath).catch(() => ''); // no regular file, or too large for a configuration
  if (!folder || !looksLikeRagen.test(text)) return undefined;
  const name = basename(uri.fsPath, extname(uri.fsPath));
  return { name, description: vscode.workspace.asRelativePath(uri), own: { file: uri.fsPath, folder } };
}

const textOf = async (file: string): Promise<string> =>
  (await readBounded(file, { most: mostYamlBytes, within: null })).toString('utf8');

/** The first comment line of a YAML text. */
function describe(text: string): string {
  return /^#+\s*(.+)$/m.exec(text.split(/\n(?=[^#\n])/)[0])?.[1].trim() ?? '';
}

/** The names in a YAML text's `defaults` list. */
function defaultsOf(text: string): string[] {
  const parsed: unknown = yamlValue(text);
  const listed = typeof parsed === 'object' && parsed !== null && 'defaults' in parsed ? parsed.defaults : [];
  return Array.isArray(listed) ? listed.filter(name => typeof name === 'string') : [];
}
