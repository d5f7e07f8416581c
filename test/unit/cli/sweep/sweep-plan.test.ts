// Expansion of a sweep file into runs, errors in sweep files, and the bundled sweeps.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { loadConfig } from '../../../../extension/trainer/config/load-config';
import { readSweep } from '../../../../extension/cli/sweep/sweep-plan';
import { claimFigure, panelsOf } from '../../../../extension/run-data/claims/claim-figure';
import { metricsOf } from '../../../../extension/run-data/claims/claim-metrics';
import { armsOf } from '../../../../extension/run-data/claims/claim-schema';
import { paperTheme } from '../../../../extension/run-data/report/report-markdown';
import { presetFolder, sweepFolder, repository } from '../../trainer/config/presets';

vi.mock(import('../../../../extension/node/installation'), async load => {
  const { installation } = await load();
  return { installation: { ...installation, environments: join(__dirname, '../../../../envs') } };
});

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'ragen-sweep-'))));
afterEach(() => rmSync(folder, { recursive: true }));

const source = (overrides: string[] = []) => ({
  workspace: folder,
  presetFolders: [presetFolder],
  sweepFolders: [sweepFolder],
  overrides,
});
const read = (text: string, ...overrides: string[]) => {
  writeFileSync(join(folder, 'mine.yaml'), text);
  return readSweep('mine.yaml', source(overrides));
};

test('a sweep is grid × list × seeds, everything else equal', () => {
  const { id, points, members, keys, named } = read(
    `config_name: quickstart
overrides: [trainer.total_training_steps=7]
list:
  - {name: PPO, overrides: [algorithm.adv_estimator=gae]}
  - {name: GRPO, overrides: [algorithm.adv_estimator=grpo]}
grid:
  actor_rollout_ref.actor.optim.lr: [0.001, 1e-4]
  trainer.project_name: ["true"]
seeds: [1, 2]`,
    'trainer.test_freq=3',
  );
  expect({ id, keys, named }).toEqual({ id: 'mine', keys: ['actor_rollout_ref.actor.optim.lr'], named: true });
  expect(points.map(({ label, name, values }) => [label, name, values])).toEqual([
    ['PPO, lr=0.001, project_name="true"', 'PPO', value('gae', 0.001)],
    ['PPO, lr=0.0001, project_name="true"', 'PPO', value('gae', 0.0001)],
    ['GRPO, lr=0.001, project_name="true"', 'GRPO', value('grpo', 0.001)],
    ['GRPO, lr=0.0001, project_name="true"', 'GRPO', value('grpo', 0.0001)],
  ]);
  expect(members.map(({ point, seed }) => [point, seed])).toEqual(
    [0, 1, 2, 3].flatMap(point => [1, 2].map(seed => [point, seed])),
  );
  expect(new Set(members.map(({ loaded }) => loaded.hash)).size).toBe(8);
  const { config, hash } = loadConfig({ ...source(), ...members[3], overrides: members[3].overrides });
  expect(hash).toBe(members[3].loaded.hash);
  expect(config).toMatchObject({
    seed: { train: 2 },
    algorithm: { adv_estimator: 'gae' },
    trainer: { total_training_steps: 7, test_freq: 3, project_name: 'true' },
    actor_rollout_ref: { actor: { optim: { lr: 0.0001 } } },
  });
  expect(config.trainer.experiment_name).toBe('mine PPO, lr=0.0001, project_name="true" seed 2');
});

const value = (estimator: string, lr: number) => ({
  'algorithm.adv_estimator': estimator,
  'actor_rollout_ref.actor.optim.lr': lr,
  'trainer.project_name': 'true',
});

test('counted seeds are so far apart that no two runs share an environment seed', () => {
  const { members } = read('config_name: quickstart\nseeds: 3');
  expect(members.map(({ seed }) => seed)).toEqual([10_000, 1_010_000, 2_010_000]);
});

test('a key set by one point only is compared by its value in both', () => {
  const { points, keys } = read('config_name: quickstart\nlist: [[], [trainer.test_freq=1], [seed.val=124]]');
  expect(keys).toEqual(['trainer.test_freq', 'seed.val']);
  expect(points.map(({ values }) => values)).toEqual([
    { 'trainer.test_freq': 8, 'seed.val': 123 },
    { 'trainer.test_freq': 1, 'seed.val': 123 },
    { 'trainer.test_freq': 8, 'seed.val': 124 },
  ]);
});

test('a sweep file may grow: existing points keep their configuration', () => {
  const hashes = (values: string) =>
    read(`config_name: quickstart\ngrid: {trainer.test_freq: [${values}]}`).members.map(({ loaded }) => loaded.hash);
  expect(hashes('1, 2, 3').slice(0, 2)).toEqual(hashes('1, 2'));
});

test('keys with the same last part are shown in full', () => {
  const { points } = read(
    'config_name: quickstart\ngrid: {actor_rollout_ref.actor.optim.lr: [1], critic.optim.lr: [2]}',
  );
  expect(points[0].label).toBe('actor_rollout_ref.actor.optim.lr=1, critic.optim.lr=2');
});

test('a halving rule has rungs up to the end of the runs, and changes no configuration', () => {
  const text = 'config_name: quickstart\noverrides: [trainer.total_training_steps=40, trainer.test_freq=4]';
  const plain = read(text);
  const halved = read(`${text}\nhalving: {first_step: 5, least_points: 2}`);
  expect(plain.halving).toBeNull();
  expect(halved.halving).toEqual({
    ...{ rungs: [5, 10, 20], factor: 2, least_points: 2, metric: null, goal: 'max' },
  });
  expect(halved.members[0].loaded.hash).toBe(plain.members[0].loaded.hash);
  expect(read(`${text}\nhalving: {first_step: 1, metric: actor/entropy, goal: min}`).halving).toMatchObject({
    metric: 'actor/entropy',
    goal: 'min',
  });
});

describe('an invalid sweep', () => {
  test.each([
    ['config_name: quickstart\ngird: {}', /^sweep: .*mine\.yaml: Unrecognized key: "gird"$/],
    ['grid: {a: [1]}', /^sweep: .*mine\.yaml: give either config_name or config$/],
    ['config_name: a\nconfig: b', /^sweep: .*mine\.yaml: give either config_name or config$/],
    ['config_name: quickstart\ngrid: {trainer.test_freq: 3}', /^sweep: .*mine\.yaml: grid\.trainer\.test_freq: /],
    ['config_name: [', /^sweep: .*mine\.yaml cannot be read \(.*\): correct the file$/],
    [
      'config_name: quickstart\ngrid: {trainer.test_frq: [3]}',
      /^sweep mine, test_frq=3: config: trainer\.test_frq is not in the configuration: did you mean test_freq\?/,
    ],
    [
      'config_name: _4_countdown\noverrides: ["custom_envs.Countdown.env_type=countdwn"]',
      /^sweep mine, _4_countdown: config: custom_envs\.Countdown\.env_type is countdwn, which is neither a built-in environment/,
    ],
    [
      'config_name: quickstart\noverrides: [trainer.test_freq=8]\nhalving: {first_step: 4}',
      /^sweep mine: halving\.first_step is 4, but trainer\.test_freq is 8, so no validation precedes the first comparison: /,
    ],
    ['config_name: quickstart\nhalving: {first_step: 8, factor: 1}', /mine\.yaml: halving\.factor: /],
    ['config_name: quickstart\nseeds: 1000000000000', /mine\.yaml expands to 1000000000000 runs .*limit of 1000:/],
    [
      `config_name: quickstart\ngrid: {${[1, 2, 3, 4, 5].map(i => `a${i}: [1, 2, 3, 4, 5, 6, 7]`).join(', ')}}`,
      /16807 runs/,
    ],
  ])('is refused in one sentence: %s', (text, sentence) => expect(() => read(text)).toThrow(sentence));

  test('an unknown name is refused', () =>
    expect(() => readSweep('kl_cof', source())).toThrow('sweep: there is no sweep "kl_cof": did you mean kl_coef?'));
});

describe('the sweeps of the paper', () => {
  const shipped = (name: string) =>
    readSweep(name, { workspace: repository, presetFolders: [presetFolder], sweepFolders: [sweepFolder] });

  test('vary the filter value', () => {
    const { points, members } = shipped('filter_value');
    expect(points.map(({ name }) => name)).toEqual(['1.0', '0.98', '0.95', '0.9', '0.8', '0.6', '0.4', 'nofilter']);
    expect(members).toHaveLength(8);
    const at = 'actor_rollout_ref.rollout.rollout_filter';
    expect(points.map(({ values }) => [values[`${at}_value`], values[`${at}_include_zero`]])).toEqual([
      ...[1, 0.98, 0.95, 0.9, 0.8, 0.6, 0.4].map(p => [p, false]),
      [1, true],
    ]);
  });

  test.each([
    ['kl_coef', 'actor_rollout_ref.actor.kl_loss_coef'],
    ['entropy_coef', 'actor_rollout_ref.actor.entropy_coeff'],
  ])('%s varies its key', (name, key) => {
    const { points, keys } = shipped(name);
    expect(points.map(({ values }) => values[key])).toEqual([0, 0.001, 0.003, 0.01, 0.03, 0.1]);
    expect(keys).toContain(key);
  });

  test('cover the main table', () => {
    const { points, members } = shipped('main_table');
    expect(members).toHaveLength(4 * 4 * 2);
    expect([...new Set(points.map(({ name }) => name))]).toEqual(['PPO', 'DAPO', 'GRPO', 'DrGRPO']);
  });
});

describe('the sweeps of claims', () => {
  const names = readdirSync(sweepFolder).filter(name => name.startsWith('claim_'));
  test('are one for each of the claims 1 to 10', () =>
    expect(names.map(name => Number(name.split('_')[1])).sort((a, b) => a - b)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ]));

  test.each(names)('%s states its tests beforehand, for its arms and with enough seeds', name => {
    const file = join(sweepFolder, name);
    const plan = readSweep(file, { workspace: repository, presetFolders: [presetFolder], sweepFolders: [sweepFolder] });
    const { claim, points, members } = plan;
    expect(readFileSync(file, 'utf8')).toMatch(/^# Claim \d+ [\s\S]*\n# Reproduced: [\s\S]* Opposite: /);
    expect(claim!.number).toBe(Number(name.split('_')[1]));
    const labels = points.map(({ label }) => label);
    expect(claim!.tests.flatMap(armsOf).filter(arm => !labels.includes(arm))).toEqual([]);
    expect(claim!.runs_of.filter(other => !names.includes(`${other}.yaml`))).toEqual([]);
    expect(members.length / points.length).toBeGreaterThanOrEqual(claim!.number <= 3 ? 5 : 3);
  });

  test.each(names)('%s has a figure whose titles are not cut off', name => {
    const plan = readSweep(join(sweepFolder, name), source());
    const plans = [plan, ...plan.claim!.runs_of.map(other => readSweep(other, source()))];
    const arms = [...new Set(plans.flatMap(({ points }) => points.map(({ label }) => label)))];
    const values = Object.fromEntries(metricsOf(plan.claim!).map(metric => [metric, 1]));
    const runs = arms.map(arm => ({ arm, seed: 1, steps: [1, 2].map(step => ({ step, ...values })) }));
    const lines = [...claimFigure(plan.claim!, runs, paperTheme)!.matchAll(/font-weight="600">([^<]*)</g)];
    expect(lines.length).toBeGreaterThanOrEqual(panelsOf(plan.claim!, arms).length);
    // A panel is 460 wide, with margins of 64 and 20; a character of a title is at most 8.2 wide.
    expect(lines.map(([, line]) => line).filter(line => line.length * 8.2 > 460 - 64 - 20)).toEqual([]);
  });
});
