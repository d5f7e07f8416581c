// Fuzz targets for run configurations and overrides, both as the trainer composes them and as the editor reads them
// while the user types.
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, sep } from 'node:path';
import { mistakesIn } from '../../extension/vscode/configuration/configuration-mistakes';
import { gapAt, locationAt } from '../../extension/vscode/configuration/yaml-locations';
import { textHash } from '../../extension/run-data/episode-index-line';
import { compose } from '../../extension/trainer/config/compose';
import type { ConfigProblem } from '../../extension/trainer/config/config-error';
import { configurationFileSchema } from '../unit/trainer/config/file-schema';
import { interpolate } from '../../extension/trainer/config/interpolation';
import { loadConfig, overrideConfig } from '../../extension/trainer/config/load-config';
import { applyOverrides } from '../../extension/trainer/config/overrides';
import { adviseOnKey, isKnownKey, validate } from '../../extension/trainer/config/validate';
import { emptyMap, parseYaml, toPlain } from '../../extension/trainer/config/yaml-tree';
import type { MapNode } from '../../extension/trainer/config/yaml-tree';
import { readSweep } from '../../extension/cli/sweep/sweep-plan';
import { mostBytes } from './fuzz-mutations';
import { Escaped, holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';

const presets = 'media/presets';
/** The presets of at most this length; short inputs keep the time per input low. */
const presetTexts = (mostLetters: number): string[] =>
  readdirSync(presets)
    .filter(name => name.endsWith('.yaml'))
    .map(name => readFileSync(join(presets, name), 'utf8'))
    .filter(text => text.length <= mostLetters);

/** YAML syntax that no preset uses. */
const forms = [
  'a: &x {b: 1, c: [1, 2]}\nd: *x\ne:\n  <<: *x\n  f: ${a.b}\n',
  'trainer:\n  total_training_steps: 10\n  experiment_name: "a${b}c"\nb: 1.5e3\n',
  '? a\n: b\n? [c, d]\n: {e: !!str 1}\n',
  '- 1\n- - 2\n  - 3\n-\n  k: |\n    text\n    more\n  l: >-\n    folded\n',
  '%YAML 1.2\n---\na: 0x1f\nb: 0o17\nc: .inf\nd: ~\n...\n',
  'defaults:\n  - small\n  - _self_\nx: ${trainer.total_training_steps}\ny: a ${z} b\nz: text # a comment\n',
];

/** A folder of configurations that may be referenced; its sibling must be unreachable. */
let folder = '';
function workspace(): string {
  folder = join(mkdtempSync(join(tmpdir(), 'configurations-')), 'inside');
  mkdirSync(folder);
  writeFileSync(join(folder, 'small.yaml'), 'trainer:\n  total_training_steps: 1\n');
  writeFileSync(join(folder, '..', 'small.yaml'), 'escaped: true\n');
  return folder;
}

const yamlLimits = (text: string): { tree: MapNode | null; problems: ConfigProblem[] } => {
  const problems: ConfigProblem[] = [];
  const tree = parseYaml(text, { file: '/run.yaml' }, problems);
  return { tree: tree?.kind === 'map' ? tree : null, problems };
};

let schema: ReturnType<typeof configurationFileSchema>;

/** A position in a text, determined by the text. */
const placeIn = (text: string): number => textHash(text) % (text.length + 1);

export const configurationTargets: readonly FuzzTarget[] = [
  {
    name: 'yaml',
    form: 'yaml',
    corpus: [...presetTexts(600), ...forms],
    weight: 20,
    run(input) {
      const { tree, problems } = yamlLimits(input.toString('utf8'));
      if (!tree) return problems;
      const interpolated = interpolate(tree, problems);
      return [toPlain(tree), toPlain(interpolated), problems];
    },
  },
  {
    name: 'run configuration',
    form: 'yaml',
    corpus: [...presetTexts(600), ...forms],
    weight: 6,
    begin: () => void workspace(),
    run(input) {
      const file = join(folder, 'run.yaml');
      writeFileSync(file, input);
      const problems: ConfigProblem[] = [];
      const { files } = compose(file, [folder], problems);
      const outside = files.find(each => !each.startsWith(folder + sep));
      if (outside !== undefined) throw new Escaped(`${outside} was read`);
      return loadConfig({ configFile: file, overrides: [], presetFolders: [folder], workspace: folder });
    },
  },
  {
    name: 'whole run configuration',
    form: 'yaml',
    corpus: [...presetTexts(mostBytes), ...forms.map(form => `defaults: [base, _self_]\n${form}`)],
    weight: 2,
    begin: () => void workspace(),
    run(input) {
      const file = join(folder, 'run.yaml');
      writeFileSync(file, input);
      return loadConfig({ configFile: file, overrides: [], presetFolders: [presets], workspace: folder });
    },
  },
  {
    name: 'sweep',
    form: 'yaml',
    corpus: [
      'config_name: quickstart\ngrid:\n  trainer.total_training_steps: [1, 2]\n  seed.val: [3]\nseeds: 2\ntags: [a]\n',
      'config_name: quickstart\nlist:\n  - [trainer.test_freq=1]\n  - {name: often, overrides: [trainer.test_freq=2]}\nseeds: [1, 2]\n',
      'config_name: [small, other]\noverrides: ["seed.train=5", "+a.b=[1,2]"]\nlist: [["x=1"], []]\n',
    ],
    weight: 0.1,
    mostMs: 20_000, // composes up to a thousand runs
    begin: () => void workspace(),
    run(input) {
      const file = join(folder, 'sweep.yaml');
      writeFileSync(file, input);
      return readSweep(file, { workspace: folder, presetFolders: [folder, presets], sweepFolders: [] });
    },
  },
  {
    name: 'configuration in the editor',
    form: 'yaml',
    corpus: [...presetTexts(600), ...forms],
    weight: 6,
    begin: () => void (schema = configurationFileSchema({})),
    run(input) {
      const text = input.toString('utf8');
      const inside = (found: { from: number; to: number } | undefined): void =>
        holds(!found || (found.from >= 0 && found.to <= text.length && found.from <= found.to), 'a place lies outside');
      inside(locationAt(text, placeIn(text)));
      inside(gapAt(text, placeIn(text)));
      return mistakesIn(text, schema);
    },
  },
  {
    name: 'overrides',
    form: 'text',
    corpus: [
      'trainer.total_training_steps=5\n+trainer.x=[1,{a: 2}]\n~trainer.x\n++a.b.c="text"',
      'custom_envs.Bandit.env_config={lo_arm_score:0.1, hi: null}\ntrainer.logger=[console]\nx=${trainer.a}',
      "es_manager.train.env_configs.tags=['Bandit']\nactor_rollout_ref.actor.optim.lr=1e-6\na=||\nb=~",
    ],
    weight: 12,
    run(input) {
      const problems: ConfigProblem[] = [];
      const base = parseYaml('trainer: {total_training_steps: 3, a: {b: 1}}\nx: [1, 2]\n', {}, problems) as MapNode;
      const known = {
        isKnown: isKnownKey,
        advise: (path: readonly string[], name: string) => adviseOnKey(path, name, []),
      };
      const tree = applyOverrides(base ?? emptyMap({}), input.toString('utf8').split('\n'), known, problems);
      const plain = toPlain(interpolate(tree, problems));
      validate(tree, { hasDefaults: false }, problems, []);
      return [plain, problems];
    },
  },
  {
    name: 'stored configuration',
    form: 'json',
    corpus: [
      JSON.stringify({
        trainer: { total_training_steps: 3, logger: ['console'] },
        custom_envs: { A: { env_type: 'bandit' } },
      }),
    ],
    weight: 3,
    run(input) {
      const config = JSON.parse(input.toString('utf8')) as Record<string, unknown>;
      return overrideConfig(config, ['trainer.total_training_steps=5']);
    },
    lawful: ['UserError', 'SyntaxError'], // the manifest's reader has parsed it before
  },
];
