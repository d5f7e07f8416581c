// Maps each configured tag to its source file. The tag's `env_type` names a built-in environment, or is the path of the
// user's TypeScript file.
import { existsSync, readFileSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import type { EnvironmentSpec } from '../../protocol/environment-link';
import { defaultToolLimits, type ToolServer, type ToolSettings } from '../../protocol/tool-link';
import { UserError } from '../../common/user-error';

/**
 * All `env_type`s of RAGEN. For a name that is in this list but not in the registry, the error message says that this
 * version does not contain the environment.
 */
const ragenEnvironments: readonly string[] = [
  'alfworld',
  'bandit',
  'countdown',
  'deepcoder',
  'frozen_lake',
  'game_2048',
  'lean',
  'metamathqa',
  'rubikscube',
  'search',
  'sokoban',
  'spatial',
  'static',
  'sudoku',
  'webshop',
];

export interface TagSource {
  env_type: string;
  env_config?: Record<string, unknown> | null;
  rewards?: { file?: string | null } | null;
  mcp_servers?: Record<string, ToolServer>;
}

/**
 * Returns the file name of each built-in environment by env_type, relative to the folder `builtIn`; read from
 * registry.json in this folder.
 */
export const builtInFiles = (builtIn: string): Record<string, string> =>
  JSON.parse(readFileSync(join(builtIn, 'registry.json'), 'utf8')) as Record<string, string>;

/**
 * Returns the specification of each tag.
 * @param builtIn folder of the built-in environments
 * @param limits limits of tool calls; the defaults if undefined
 * @throws UserError if a tag's env_type is neither built in nor a file, or if its rewards file does not exist
 */
export function environmentSpecs(
  tags: readonly string[],
  custom_envs: Readonly<Record<string, TagSource>>,
  builtIn: string,
  workspace: string,
  limits: Omit<ToolSettings, 'servers'> = defaultToolLimits,
): EnvironmentSpec[] {
  const registry = builtInFiles(builtIn);
  return [...new Set(tags)].map(tag => {
    const { env_type, env_config, rewards, mcp_servers: servers = {} } = custom_envs[tag];
    const known = Object.hasOwn(registry, env_type) ? join(builtIn, registry[env_type]) : undefined;
    const source = known ?? (isAbsolute(env_type) ? env_type : resolve(workspace, env_type));
    if (!existsSync(source)) {
      const builtInTypes = Object.keys(registry).join(', ');
      throw new UserError(
        ragenEnvironments.includes(env_type)
          ? `config: custom_envs.${tag}.env_type is ${env_type}, an environment of RAGEN that is not available in this version: use one of ${builtInTypes} or your own TypeScript file`
          : `config: custom_envs.${tag}.env_type is ${env_type}, which is neither a built-in environment (${builtInTypes}) nor a file: set it to the name of a built-in environment or the path of a file`,
      );
    }
    const file = rewardsFile(tag, rewards?.file ?? undefined, known === undefined ? source : undefined, workspace);
    const tools = { ...limits, servers };
    const spec = { tag, env_type, source, config: placedConfig(env_type, env_config, workspace), tools };
    if (file === undefined) return spec;
    return known === undefined
      ? { ...spec, scored: { environment: source, rewards: file } }
      : { ...spec, source: file, scored: { environment: `ragen-workbench/envs/${env_type}`, rewards: file } };
  });
}

/** The built-in environments whose programs call the model: these programs decide how an episode continues. */
export const withPrograms: ReadonlySet<string> = new Set(['program', 'verifiers']);

/** Returns an env_config whose folder is an absolute path, if the environment has programs or files in this folder. */
export function placedConfig(
  env_type: string,
  config: Record<string, unknown> | null | undefined,
  workspace: string,
): Record<string, unknown> {
  if (!withPrograms.has(env_type)) return config ?? {};
  const { folder = '.' } = config ?? {};
  return { ...config, folder: typeof folder === 'string' ? resolve(workspace, folder) : folder };
}

/**
 * Returns the absolute path of a tag's rewards file: the configured file, or the file beside the user's environment
 * `own`; undefined if there is none.
 */
function rewardsFile(
  tag: string,
  configured: string | undefined,
  own: string | undefined,
  workspace: string,
): string | undefined {
  if (configured === undefined) {
    const beside = own?.replace(/\.ts$/, '.rewards.ts');
    return beside !== undefined && beside !== own && existsSync(beside) ? beside : undefined;
  }
  const file = resolve(workspace, configured);
  if (!existsSync(file))
    throw new UserError(
      `config: custom_envs.${tag}.rewards.file is ${configured}, which does not exist: set it to the path of a rewards file`,
    );
  return file;
}
