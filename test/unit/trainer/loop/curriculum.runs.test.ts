// A run with a curriculum: the groups of each step follow the pools, metrics and events tell of the moves, and a run that
// continues from a checkpoint plays the same episodes. Sampling ahead is tested in
// ../run/asynchronous-training.runs.test.ts.
import { rmSync } from 'node:fs';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { installation } from '../../../../extension/node/installation';
import { document, readRun } from '../../../support/terminal';
import { keepAll, trainHere } from '../../../support/train-here';
import { makeWorkspace, wordsEnvironment, type Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
const always = (success: boolean) =>
  wordsEnvironment(
    `return { observation: '', reward: String(action).length / 9, terminated: true, truncated: false, info: { success: ${success} } };`,
  );
beforeAll(() => {
  workspace = makeWorkspace();
  workspace.write('environments/easy.ts', always(true));
  workspace.write('environments/hard.ts', always(false));
});
afterAll(() => {
  workspace.remove();
  rmSync(installation.cache, { recursive: true });
});

const tag = (name: string) =>
  `+custom_envs.${name}={env_type: environments/${name.toLowerCase()}.ts, max_actions_per_traj: 1, env_config: {hold: ''}}`;
const mixed = [
  tag('Easy'),
  tag('Hard'),
  'es_manager.train.env_configs.tags=[Words,Easy,Hard]',
  'es_manager.train.env_groups=12',
  'es_manager.train.env_configs.n_groups=[4,4,4]',
  'es_manager.train.group_size=2',
  'workbench.curriculum={easy_weight: 0.25, hard_weight: 0.5, easy_above: 0.7, hard_below: 0.05}',
  ...keepAll,
];

const groupsOf = (episodes: readonly { step: number; tag: string; group_id: number }[], step: number) =>
  ['Words', 'Easy', 'Hard'].map(
    name => new Set(episodes.filter(e => e.step === step && e.tag === name).map(e => e.group_id)).size,
  );

test('plays fewer groups of tags that always or never succeed, and says when they move', async () => {
  const { lines, episodes, events } = await trainHere(workspace, mixed, 3);
  expect([1, 2, 3].map(step => groupsOf(episodes, step))).toEqual([
    [4, 4, 4],
    [7, 2, 3], // shares 4 : 1 : 2 of 12: 6.9, 1.7 and 3.4
    [7, 2, 3],
  ]);
  expect(lines[1]).toMatchObject({
    ...{ 'curriculum/Easy/groups': 2, 'curriculum/Easy/pool': 2 },
    ...{ 'curriculum/Hard/groups': 3, 'curriculum/Hard/pool': 0, 'curriculum/Hard/success': 0 },
    ...{ 'curriculum/Words/groups': 7, 'curriculum/Words/pool': 1 },
    ...{ 'curriculum/easy': 1, 'curriculum/normal': 1, 'curriculum/hard': 1 },
  });
  expect(events.filter(event => event.includes('difficulty pool'))).toEqual([
    'setting: Easy moves from the difficulty pool normal to easy: 88 % of its episodes succeed (workbench.curriculum)',
    'setting: Hard moves from the difficulty pool normal to hard: 0 % of its episodes succeed (workbench.curriculum)',
  ]);
  expect(new Set(episodes.map(({ seed, step }) => `${step} ${seed}`)).size).toBe(36); // each group has its own seed
});

test('a tag that only validation has is measured and never trained on', async () => {
  const held = [
    ...mixed.filter(each => !each.includes('Hard]')),
    'es_manager.train.env_configs.tags=[Words,Easy]',
    'es_manager.train.env_configs.n_groups=[6,6]',
    'es_manager.val.env_configs.tags=[Words,Hard]',
    'es_manager.val.env_groups=4',
    'es_manager.val.env_configs.n_groups=[2,2]',
    'trainer.test_freq=1',
  ].filter(each => !each.endsWith('n_groups=[4,4,4]'));
  const { lines, episodes, validation } = await trainHere(workspace, held, 2);
  expect([...new Set(episodes.filter(e => e.mode === 'train').map(e => e.tag))].sort()).toEqual(['Easy', 'Words']);
  expect([...new Set(validation.map(e => e.tag))].sort()).toEqual(['Hard', 'Words']);
  expect(lines.map(line => line['val-env/Hard/success'])).toEqual([0, 0]);
  expect(lines.flatMap(line => Object.keys(line).filter(key => key.startsWith('curriculum/Hard')))).toEqual([]);
  const seeds = (some: typeof episodes) => new Set(some.map(({ tag: of, seed }) => `${of} ${seed}`));
  expect([...seeds(validation)].filter(each => seeds(episodes.filter(e => e.mode === 'train')).has(each))).toEqual([]);
});

test('continues with its pools from a checkpoint, to the same episodes', { timeout: 120_000 }, async () => {
  const train = async (steps: number) =>
    (
      await document<{ run: string; folder: string }>(workspace.folder, [
        'train',
        '--config-name',
        'words',
        ...mixed,
        'trainer.test_freq=-1',
        'trainer.save_freq=1',
        'workbench.keep_checkpoints=5',
        `trainer.total_training_steps=${steps}`,
      ])
    ).answer;
  const whole = await train(3);
  const parted = await train(3);
  const resumed = await document(workspace.folder, ['resume', parted.run, '--from', '1', '--discard']);
  expect(resumed.code, resumed.stderr).toBe(0);
  const played = (folder: string) =>
    readRun(folder)
      .episodes.filter(({ mode }) => mode === 'train')
      .map(({ id, tag: of, seed, turns }) => [id, of, seed, turns.map(({ raw }) => raw)]);
  expect(played(parted.folder)).toEqual(played(whole.folder));
});
