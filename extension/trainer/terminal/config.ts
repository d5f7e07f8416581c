// `ragen config`: what a configuration comes to after `defaults`, overrides and references, before anything is started. What is printed
// is itself a configuration: saved as a file, it resolves to the same values and the same hash.
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { loadConfig } from '../config/load-config';
import type { LoadedConfig } from '../config/load-config';
import { answer } from './answer';
import type { Answer } from './answer';
import { presetFolders, workspaceOf } from './start';

interface ConfigFlags {
  configName?: string;
  config?: string;
  resolved?: boolean;
  workspace?: string;
  json?: boolean;
}

export function addConfig(program: Command): void {
  program
    .command('config')
    .description('print what a configuration comes to, and which of its keys have no effect')
    .argument('[overrides...]', 'key=value, such as trainer.total_training_steps=20')
    .option('--config-name <name>', 'configuration by name (see ragen presets)')
    .option('--config <file>', 'configuration file')
    .option('--resolved', 'with the values that references (${a.b}) lead to, and without keys that have no effect')
    .option('--workspace <folder>', 'folder whose config/ is looked in first (default: here)')
    .option('--json', 'print one JSON document on standard output')
    .addHelpText(
      'after',
      `
Output with --json: {"config_name", "sources": [file, …], "hash", "config": {…}, "ignored": [{"key", "reason"}, …]}.`,
    )
    .action((overrides: string[], flags: ConfigFlags) => answer(flags, async () => show(overrides, flags)));
}

/** The checked configuration in both forms. Throws a ConfigError with all problems. */
function show(overrides: readonly string[], flags: ConfigFlags): Answer {
  const workspace = workspaceOf(flags.workspace);
  const loaded = loadConfig({
    configName: flags.configName,
    configFile: flags.config,
    overrides,
    presetFolders: presetFolders(workspace),
    workspace,
  });
  const config = flags.resolved ? loaded.config : loaded.composed;
  const { sources, hash, ignored } = loaded;
  return {
    document: { config_name: flags.configName ?? flags.config, sources, hash, config, ignored },
    words: yamlText(config, loaded),
  };
}

function yamlText(
  config: LoadedConfig['config'] | LoadedConfig['composed'],
  { sources, ignored }: LoadedConfig,
): string {
  const comments = [`Composed of ${sources.join(', ')}.`, ...ignored.map(({ key, reason }) => `${key} ${reason}.`)];
  const yaml = stringify(config, { lineWidth: 120, aliasDuplicateObjects: false, flowCollectionPadding: false });
  return `${comments.map(line => `# ${line}`).join('\n')}\n${yaml.trimEnd()}`;
}
