// `ragen config`: prints a configuration after `defaults` and overrides are applied, without starting a run. The output
// is itself a valid configuration: if it is saved as a file, this file resolves to the same values and the same hash.
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { loadConfig } from '../../trainer/config/load-config';
import type { LoadedConfig } from '../../trainer/config/loaded-config';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { presetFolders, workspaceOf } from '../options/workspace';
import { resolvedConfig } from './resolved-config';

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
    .description('print a resolved configuration, and list the keys that have no effect')
    .argument('[overrides...]', 'key=value, such as trainer.total_training_steps=20')
    .option('--config-name <name>', 'name of a configuration (see ragen presets)')
    .option('--config <file>', 'configuration file')
    .option('--resolved', 'replace references (${a.b}) by their values, and leave out keys that have no effect')
    .option('--workspace <folder>', 'folder whose config/ is searched first (default: the current folder)')
    .option('--json', 'print one JSON document on standard output')
    .addHelpText(
      'after',
      `
Output with --json: {"config_name", "sources": [file, …], "hash", "config": {…}, "ignored": [{"key", "reason"}, …], "notes": [sentence, …]}.`,
    )
    .action((overrides: string[], flags: ConfigFlags) => answer(flags, async () => show(overrides, flags)));
}

/** Returns the validated configuration as a document and as YAML. Throws a ConfigError that lists all problems. */
function show(overrides: readonly string[], flags: ConfigFlags): Answer {
  const workspace = workspaceOf(flags.workspace);
  const source = {
    configName: flags.configName,
    configFile: flags.config,
    presetFolders: presetFolders(workspace),
    workspace,
  };
  const loaded = resolvedConfig(overrides, workspace, all => loadConfig({ ...source, overrides: all }));
  const config = flags.resolved ? loaded.config : loaded.composed;
  const { sources, hash, ignored, notes } = loaded;
  return {
    document: { config_name: flags.configName ?? flags.config, sources, hash, config, ignored, notes },
    plainText: yamlText(config, loaded),
  };
}

function yamlText(config: LoadedConfig['config'] | LoadedConfig['composed'], { sources, notes }: LoadedConfig): string {
  const comments = [`Composed of ${sources.join(', ')}.`, ...notes.map(note => `${note.replace(/^config: /, '')}.`)];
  const yaml = stringify(config, { lineWidth: 120, aliasDuplicateObjects: false, flowCollectionPadding: false });
  return `${comments.map(line => `# ${line}`).join('\n')}\n${yaml.trimEnd()}`;
}
