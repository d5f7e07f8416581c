// Generates docs/CONFIGURATION.md from the schema, so that the document always matches the code.
import { expectation } from '../../../../extension/common/json-schema';
import type { JsonSchema } from '../../../../extension/common/json-schema';
import { ignoredKeys } from '../../../../extension/trainer/config/ignored-keys';
import { configJsonSchema } from '../../../../extension/trainer/config/schema';
import type { Preset } from '../../../../extension/trainer/config/load-config';

const intro = `# Configuration

A run is configured in YAML with RAGEN's keys. A configuration is a file \`config/<name>.yaml\` of the workspace (\`ragen train --config-name <name>\`)
or any other file (\`--config <file>\`). With a \`defaults\` list, a file builds on other configurations and contains only the keys that differ:

    # What this run is for, in one line.
    defaults:
      - base          # RAGEN's defaults; looked up beside this file, then among the presets
      - _self_        # position of this file's own keys; last if omitted

    trainer:
      experiment_name: my_run
    es_manager:
      train:
        env_groups: 4
        env_configs: {tags: [FrozenLake], n_groups: [4]}

RAGEN's own \`config/\` folder works unchanged, in a workspace or by the path of one of its files. RAGEN's \`base\` takes some values from verl's \`ppo_trainer\`.
Here, these values come from the preset \`ppo_trainer\`, which has a value for every key and always takes precedence over a file of the same name. A file that
contains only \`custom_envs\` is merged over \`base\`.

Maps are merged key by key, and later values replace earlier values; lists are replaced completely. \`\${a.b}\` stands for the value of the key \`a.b\`.

Overrides on the command line use the same keys:

| form | meaning |
|---|---|
| \`a.b=v\` | changes a key; \`v\` is written as in YAML, a list as \`[x,y]\` |
| \`+a.b=v\` | adds a key (\`env_config\`, new tags) |
| \`++a.b=v\` | changes or adds a key |
| \`~a.b\` | removes a key |

Unknown keys are errors. All errors are shown at once, each with the file, line and column of its value. \`ragen config --config-name <name>\` checks a configuration
and prints the resolved values.

In the tables below, *default* is the value in the preset \`base\`. RAGEN's documentation and papers explain the algorithms behind the keys. A *prompt group* is a
set of episodes that begin in the same state. A *tag* is the name of an environment with its parameters. A *turn* is one answer of the model and the
environment's next observation.
`;

/**
 * Returns the document. `presets` are the presets to list. `base` has the values of the preset `base`, which are shown
 * as defaults.
 */
export function configurationDocument(presets: readonly Preset[], base: Record<string, unknown>): string {
  const sections = Object.entries(configJsonSchema().properties ?? {});
  const single = sections.filter(([, schema]) => !schema.properties && typeof schema.additionalProperties !== 'object');
  const grouped = sections.filter(([, schema]) => schema.properties !== undefined);
  const tag = configJsonSchema().properties?.custom_envs.additionalProperties;
  return [
    intro,
    '## Presets\n',
    table(
      ['name', 'description'],
      presets.map(({ name, description }) => [`\`${name}\``, description]),
    ),
    '## Top level\n',
    table(
      keyColumns,
      single.map(([key, schema]) => keyRow(key, schema, base[key])),
    ),
    ...grouped.flatMap(([key, schema]) => [
      `## ${key}\n`,
      `${schema.description}\n`,
      table(keyColumns, rows(schema, '', base[key])),
    ]),
    '## custom_envs\n',
    `Environments by tag. Each \`custom_envs.<tag>\` has:\n`,
    typeof tag === 'object' ? table(keyColumns, rows(tag, '', undefined)) : '',
    '## Keys without effect\n',
    'Configurations written for RAGEN may contain these keys and keys below them. The keys have no effect, and a run lists those that its configuration contains.\n',
    table(
      ['key', 'what it configures in RAGEN'],
      Object.entries(ignoredKeys).map(([key, steers]) => [`\`${key}\``, steers]),
    ),
  ].join('\n');
}

const keyColumns = ['key', 'value', 'default', 'meaning'];

function rows(schema: JsonSchema, prefix: string, value: unknown): string[][] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const key = prefix + name;
    const inner = isRecord(value) ? value[name] : undefined;
    return child.properties ? rows(child, `${key}.`, inner) : [keyRow(key, child, inner)];
  });
}

const keyRow = (key: string, schema: JsonSchema, value: unknown): string[] => {
  const fallback = value === undefined ? schema.default : value;
  return [`\`${key}\``, expectation(schema), fallback === undefined ? '' : code(fallback), described(schema)];
};

/**
 * Returns the description of a key, which for a nullable key may be on the key itself or on one of its alternatives.
 */
const described = (schema: JsonSchema): string =>
  schema.description ?? schema.anyOf?.find(option => option.description)?.description ?? '';

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...body.map(line), ''].join('\n');
}
