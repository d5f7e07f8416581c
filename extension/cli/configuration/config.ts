// `ragen config`: prints a configuration after `defaults` and overrides are applied, without starting a run. The output
// is itself a valid configuration: if it is saved as a file, this file resolves to the same values and the same hash.
import type { Command } from 'commander';
import { stringify } from 'yaml';
import { UserError } from '../../common/user-error';
import { loadConfig } from '../../trainer/config/load-config';
import type { LoadedConfig } from '../../trainer/config/loaded-config';
import { fitLength } from '../../trainer/config/model-length';
import { modelSource } from '../../trainer/config/model-path';
import type { RunConfig } from '../../trainer/config/schema';
import { installation } from '../../node/installation';
import { readDecoderConfig } from '../../models/weights/model-folder';
import { answer } from '../output/answer';
import type { Answer } from '../output/answer';
import { presetFolders, workspaceOf } from '../options/workspace';

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
  const load = (more: readonly string[]): LoadedConfig =>
    loadConfig({
      configName: flags.configName,
      configFile: flags.config,
      overrides: [...overrides, ...more],
      presetFolders: presetFolders(workspace),
      workspace,
    });
  const given = load([]);
  const loaded = fitLength(given, positionsAtHand(given.config, workspace), override => load([override]));
  const config = flags.resolved ? loaded.config : loaded.composed;
  const { sources, hash, ignored, notes } = loaded;
  return {
    document: { config_name: flags.configName ?? flags.config, sources, hash, config, ignored, notes },
    plainText: yamlText(config, loaded),
  };
}

/**
 * Returns the maximum number of token positions of the model that the configuration names. Returns Infinity if the
 * model is behind an API, has not been fetched, or is unusable.
 */
function positionsAtHand({ model_path, model_config, trainer }: RunConfig, workspace: string): number {
  if (model_config !== null && trainer.val_only) return Infinity;
  try {
    const source = modelSource(model_path, { workspace, modelFolders: [installation.models] });
    return 'folder' in source ? readDecoderConfig(source.folder).maxPositions : Infinity;
  } catch (error) {
    if (error instanceof UserError) return Infinity; // the error is reported when a run starts
    throw error;
  }
}

function yamlText(config: LoadedConfig['config'] | LoadedConfig['composed'], { sources, notes }: LoadedConfig): string {
  const comments = [`Composed of ${sources.join(', ')}.`, ...notes.map(note => `${note.replace(/^config: /, '')}.`)];
  const yaml = stringify(config, { lineWidth: 120, aliasDuplicateObjects: false, flowCollectionPadding: false });
  return `${comments.map(line => `# ${line}`).join('\n')}\n${yaml.trimEnd()}`;
}
