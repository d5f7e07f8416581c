// Every YAML block of the documentation composes and validates: a block with `defaults` as it is, another one over the
// block that its page builds on, or over `quickstart`; an indented block is a part of that page's environment. Parameters of
// built-in environments are checked by their schemas, and the files that a block names are in examples/ or written by steps
// of the page. The mapping of fields, which is no configuration, is checked by its own schema.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { EnvironmentDefinition } from '../../../../envs/api/environment';
import { mappingSchema } from '../../../../extension/run-data/mapping-proposal';
import { ConfigError } from '../../../../extension/trainer/config/config-error';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import type { LoadedConfig } from '../../../../extension/trainer/config/loaded-config';
import { configuredPlugins } from '../../../../extension/trainer/plugins/configured-plugins';
import { pages } from '../../cli/documented-commands';
import { presetFolder, repository } from './presets';

interface Block {
  page: string;
  line: number;
  text: string;
  /** Name of a preset, or of an earlier block of the page, over which the block is composed; undefined for `defaults`. */
  over?: string;
}

function blocksOf(page: string): Block[] {
  const document = readFileSync(join(repository, page), 'utf8');
  let over = 'quickstart';
  let tag = '';
  return [...document.matchAll(/^( *)```yaml\n([\s\S]*?)^\1```/gm)].map(({ index, 1: indent, 2: content }) => {
    const line = document.slice(0, index).split('\n').length;
    const text = content.replaceAll(new RegExp(`^${indent}`, 'gm'), '');
    if (text.startsWith(' ')) return { page, line, text: `custom_envs:\n  ${tag}:\n${text}`, over };
    if (!/^defaults:/m.test(text)) return { page, line, text, over };
    over = nameOf({ page, line });
    tag = /^custom_envs:\n {2}(\w+):/m.exec(text)?.[1] ?? '';
    return { page, line, text };
  });
}
const nameOf = ({ page, line }: Pick<Block, 'page' | 'line'>): string => `${basename(page, '.md')}-${line}`;

const blocks = pages.flatMap(blocksOf);
const folder = mkdtempSync(join(tmpdir(), 'ragen-documented-'));
mkdirSync(join(folder, 'config'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
for (const block of blocks) writeFileSync(join(folder, 'config', `${nameOf(block)}.yaml`), block.text);

/** Composes a block with what it builds on. */
function composed(block: Block): LoadedConfig {
  const entry = join(folder, 'config', `${nameOf(block)}-over.yaml`);
  if (block.over !== undefined) writeFileSync(entry, `defaults: [${block.over}, ${nameOf(block)}, _self_]\n`);
  return loadConfig({
    configFile: block.over === undefined ? join(folder, 'config', `${nameOf(block)}.yaml`) : entry,
    overrides: [],
    presetFolders: [join(repository, 'examples/config'), presetFolder],
    workspace: folder,
  });
}

const registry = JSON.parse(readFileSync(join(repository, 'envs/registry.json'), 'utf8')) as Record<string, string>;

/** Returns the problems of the parameters of a tag of a built-in environment. */
async function parameterProblems({ env_type, env_config }: LoadedConfig['config']['custom_envs'][string]) {
  if (!(env_type in registry)) return [];
  const { default: environment } = (await import(join(repository, 'envs', registry[env_type]))) as {
    default: EnvironmentDefinition;
  };
  return environment.config.safeParse(env_config).error?.issues ?? [];
}

const isMapping = ({ page }: Block): boolean => page === 'docs/FOREIGN-RUNS.md';
const configurations = blocks.filter(block => !isMapping(block));

describe('a configuration of the documentation', () => {
  test.each(configurations.map(block => [`${block.page}:${block.line}`, block] as const))('%s', async (_, block) => {
    const { config, ignored } = composed(block);
    expect(ignored).toEqual([]);
    const tags = Object.entries(config.custom_envs).filter(([tag]) => new RegExp(`^  ${tag}:`, 'm').test(block.text));
    for (const [tag, settings] of tags) expect([tag, await parameterProblems(settings)]).toEqual([tag, []]);

    const page = readFileSync(join(repository, block.page), 'utf8');
    const plugins = configuredPlugins(config);
    for (const { kind, path } of plugins) expect(page).toContain(`ragen plugin new ${kind} ${basename(path, '.ts')}\n`);
    const steps = page.replaceAll(/```yaml\n[\s\S]*?```/g, '');
    const named = [...block.text.matchAll(/\b(?:envs|plugins|rubrics)\/[\w.-]+/g)].map(([path]) => path);
    for (const path of named.filter(each => !plugins.some(plugin => plugin.path === each)))
      expect(existsSync(join(repository, 'examples', path)) || steps.includes(path), path).toBe(true);
  });
});

test('the mapping of fields is one', () => {
  const [{ text }] = blocks.filter(isMapping);
  expect(mappingSchema.safeParse(parse(text)).error).toBeUndefined();
});

test('a renamed key of a block is refused, whether it has defaults or not', () => {
  const changed = (page: string, from: string, to: string) => {
    const block = blocks.find(each => each.page === page && each.text.includes(from))!;
    const made = { ...block, line: 1e6 + block.line, text: block.text.replace(from, to) };
    writeFileSync(join(folder, 'config', `${nameOf(made)}.yaml`), made.text);
    return () => composed(made);
  };
  expect(changed('docs/PLUGINS.md', 'metrics:', 'metrices:')).toThrow(ConfigError);
  expect(changed('docs/CURRICULUM.md', 'easy_above:', 'easy_over:')).toThrow(ConfigError);
  expect(changed('docs/DISTILLATION.md', 'use_rewards:', 'rewards:')).toThrow(ConfigError);
});
