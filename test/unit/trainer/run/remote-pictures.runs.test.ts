// A vision-language model is trained on pictures of an environment on a server of `ragen env serve`, through OpenEnv's
// protocol and through VAGEN's GymService: samples, stored pictures, metrics and weights are those of a run with the same
// environment on this machine, to the bit. The model is ragen-tiny-vision, because it answers in a form that is executed.
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Episode } from '../../../../extension/run-data/episode';
import { installation } from '../../../../extension/node/installation';
import { killAll } from '../../../support/terminal';
import { keepAll, trainHere, type Trained } from '../../../support/train-here';
import { tinyOverrides } from '../../../support/tiny-overrides';
import { makeWorkspace, type Workspace } from '../../../support/workspace';
import { builtIn, startServing, type Serving } from '../../environments/server/serving';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

const lake = { size: 4, p: 0.8, is_slippery: false, success_rate: 1, render_mode: 'rgb_array' };
let workspace: Workspace;
let serving: Serving;
let url: string;
let local: Trained;

beforeAll(async () => {
  workspace = makeWorkspace();
  serving = await startServing();
  ({ url } = await serving.serve([builtIn('frozen_lake', lake)], { maxSessions: 40 }));
  local = await trained('frozen_lake', lake);
}, 60_000);
afterAll(async () => {
  await serving.stop();
  await killAll(workspace.folder);
  rmSync(installation.cache, { recursive: true, force: true });
  workspace.remove();
});

/** Trains two steps of two groups of two episodes with three turns, and keeps the last checkpoint. */
const trained = (type: string, config: Record<string, unknown>): Promise<Trained> =>
  trainHere(
    workspace,
    [
      ...tinyOverrides({ groups: 2, turns: 3, tokens: 60, miniBatch: 4 }),
      `custom_envs.QuickVisualLake.env_type=${type}`,
      `~custom_envs.QuickVisualLake.env_config`,
      `+custom_envs.QuickVisualLake.env_config=${JSON.stringify(config)}`,
      'trainer.save_freq=2',
      ...keepAll,
    ],
    2,
    undefined,
    'quickstart-vision',
  );

/** What an episode shows and is trained on. The environment's name and version differ, and servers send no true states. */
const samples = (episodes: readonly Episode[]) =>
  episodes.map(({ environment: _, turns, ...episode }) => ({
    ...episode,
    turns: turns.map(({ true_state: _, true_next_state: __, ...turn }) => turn),
  }));

/** The metrics of a step that do not depend on the machine's speed. */
const measured = (line: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(Object.entries(line).filter(([key]) => !/^(time|wall_s)$|^(perf|timing[^/]*|system)\//.test(key)));

test.each([
  ['openenv', {}],
  ['gym_service', { actions: ['Left', 'Down', 'Right', 'Up'] }],
])('a run on %s equals a run on this machine', async (protocol, more) => {
  const remote = await trained('remote', { protocol, url: `${url}/frozen_lake`, ...more });
  expect(remote.end).toBe('finished');
  expect(remote.episodes).toHaveLength(8);
  expect(remote.episodes[0].environment.name).toBe('remote');
  expect(samples(remote.episodes)).toEqual(samples(local.episodes));
  expect(remote.episodes.some(({ turns }) => turns.some(({ executed }) => executed.length > 0))).toBe(true);
  for (const [i, line] of remote.lines.entries()) {
    expect(line['actor/grad_norm']).toBeGreaterThan(0);
    expect(measured(line)).toEqual(measured(local.lines[i]));
  }
  const pictures = readdirSync(join(remote.folder, 'pictures')).sort();
  expect(pictures.length).toBeGreaterThan(2);
  expect(pictures).toEqual(readdirSync(join(local.folder, 'pictures')).sort());
  for (const name of pictures) {
    const bytes = readFileSync(join(remote.folder, 'pictures', name));
    expect(`${createHash('sha256').update(bytes).digest('hex')}.png`).toBe(name);
  }
  const weights = ({ folder }: Trained): Buffer =>
    readFileSync(join(folder, 'checkpoints', readdirSync(join(folder, 'checkpoints'))[0], 'model.safetensors'));
  expect(weights(remote).equals(weights(local))).toBe(true);
});
