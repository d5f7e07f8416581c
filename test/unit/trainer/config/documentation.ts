// Generates docs/CONFIGURATION.md from the schema, so the document always matches the program.
import { expectation } from '../../../../extension/common/json-schema';
import type { JsonSchema } from '../../../../extension/common/json-schema';
import { ignoredKeys } from '../../../../extension/trainer/config/ignored-keys';
import { configJsonSchema } from '../../../../extension/trainer/config/schema';
import type { Preset } from '../../../../extension/trainer/config/load-config';

const intro = `# Configuration

A run is configured in YAML with RAGEN's keys. Configurations lie in \`config/<name>.yaml\` of the workspace (\`ragen train --config-name <name>\`) or in any
other file (\`--config <file>\`). A file builds on others by a \`defaults\` list and says what differs:

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

RAGEN's own \`config/\` folder works as it is, in a workspace or by the path of a file. What its \`base\` leaves to verl's \`ppo_trainer\` comes from the preset
of that name, which has a value for every key and always takes precedence over a file of that name. A file that only holds \`custom_envs\` is merged over \`base\`.

Maps are merged key by key, and later entries win; lists are replaced as a whole. \`\${a.b}\` stands for the value of the key \`a.b\`.

Overrides on the command line name keys in the same way:

| form | meaning |
|---|---|
| \`a.b=v\` | changes a key; \`v\` is typed as in YAML, lists are \`[x,y]\` |
| \`+a.b=v\` | adds a key (\`env_config\`, new tags) |
| \`++a.b=v\` | changes or adds |
| \`~a.b\` | removes a key |

Unknown keys are errors. All errors are shown at once, each with the file, line and column its value came from. \`ragen config --config-name <name>\` checks a
configuration and prints the resolved values.

Below, *default* is the value in the preset \`base\`. RAGEN's documentation and papers explain the algorithms behind the keys; a *prompt group* is a number of
episodes that begin in the same state, a *tag* the name of an environment with its parameters, and a *turn* one answer of the model with what the
environment shows after it.
`;

/**
 * Returns the document. `presets`: the listed presets; `base`: plain values of the preset `base`, shown as defaults.
 */
export function configurationDocument(presets: readonly Preset[], base: Record<string, unknown>): string {
  const sections = Object.entries(configJsonSchema.properties ?? {});
  const single = sections.filter(([, schema]) => !schema.properties && typeof schema.additionalProperties !== 'object');
  const grouped = sections.filter(([, schema]) => schema.properties !== undefined);
  const tag = configJsonSchema.properties?.custom_envs.additionalProperties;
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
    'Configurations written for RAGEN may contain these keys and everything below them; a run lists the ones it ignores.\n',
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

/** Returns the description of a key; a nullable key has it on the key itself or on one of its alternatives. */
const described = (schema: JsonSchema): string =>
  schema.description ?? schema.anyOf?.find(option => option.description)?.description ?? '';

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

const code = (value: unknown): string => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;

function table(head: readonly string[], body: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...body.map(line), ''].join('\n');
}
