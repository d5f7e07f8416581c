// One step of each of RAGEN's own files in a workspace's config/, with the shipped model and fewer, shorter episodes.
// Substitutes replace servers and data that are not shipped. ragen-files.test.ts checks that the files load unchanged.
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { ragenFolder, ragenNames } from './ragen-files';
import { installation } from '../../../../extension/node/installation';
import { document, killAll, ragen, runsOf } from '../../../support/terminal';
import { stepOverrides, tinyOverrides } from '../../../support/tiny-overrides';
import { trainHere } from '../../../support/train-here';
import { makeWorkspace, root } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

vi.mock(import('../../../../extension/node/installation'), async () =>
  (await import('../../../support/test-installation')).testInstallation(),
);

let workspace: Workspace;
beforeAll(() => {
  workspace = makeWorkspace();
  cpSync(ragenFolder, join(workspace.folder, 'config'), { recursive: true });
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
  rmSync(installation.cache, { recursive: true, force: true });
});

const tiny = (validationTags = 1) => ['model_path=ragen-tiny', ...tinyOverrides({ validationTags })];
const oneStep = stepOverrides(1);

/** Overrides for files whose requirements may be missing on this machine. */
const standIns: Record<string, string[]> = {
  _7_lean: [
    `custom_envs.Lean.env_config={repl_command: ${JSON.stringify([process.execPath, join(root, 'test/unit/envs/lean/tiny-lean.mjs')])}}`,
  ],
  webshop_full: ['custom_envs.WebShopFull.env_config.dataset=small'],
};

interface Answer {
  folder: string;
  state: string;
  steps: number;
  evaluation?: { overall: { episodes: number }; files: { trajectories: string } };
}

test.each(ragenNames.filter(name => name !== 'eval_webshop'))('%s trains one step', async name => {
  const overrides = [...tiny(name === '_1_bandit' ? 2 : 1), ...(standIns[name] ?? [])];
  const { end, lines } = await trainHere(workspace, overrides, 1, () => undefined, name);
  expect({ end, steps: lines.map(({ step }) => step) }).toEqual({ end: 'finished', steps: [1] });
});

describe('eval_webshop', () => {
  test('evaluates, although it contains no training steps', async () => {
    const args = ['train', '--config-name', 'eval_webshop', ...tiny(), 'trainer.resume_mode=disable'];
    const { code, answer, stderr } = await document<Answer>(workspace.folder, args);
    expect(code, stderr).toBe(0);
    expect(answer).toMatchObject({ state: 'finished', evaluation: { overall: { episodes: 1 } } });
  });

  test("reports that its author's checkpoint is missing", async () => {
    const { code, stderr } = await ragen(workspace.folder, ['train', '--config-name', 'eval_webshop', ...tiny()]);
    expect(code).toBe(1);
    expect(stderr).toMatch(/cannot read \/ABSOLUTE\/PATH\/TO\/\S+global_step_200 \(ENOENT\): it does not exist: /);
  });
});

describe("RAGEN's evaluation lines", () => {
  const line = ['eval', '--config-name', 'eval', 'system.CUDA_VISIBLE_DEVICES=0', ...tiny(), 'output.dir=outputs'];

  test('write the named file with output.format=jsonl', async () => {
    const args = [...line, 'output.filename=tiny-1.jsonl', 'output.format=jsonl', 'output.append_timestamp=false'];
    const { code, answer, stderr } = await document<Answer>(workspace.folder, args);
    expect(code, stderr).toBe(0);
    expect(stderr).not.toMatch(/pickle files/);
    const file = join(workspace.folder, 'outputs/tiny-1.jsonl');
    expect(answer.evaluation!.files.trajectories).toBe(file);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({ custom_id: 'traj_0' });
  });

  test('with output.format=pkl report that JSON lines are written instead, and write them', async () => {
    const args = [...line, 'output.filename=pickled.pkl', 'output.format=pkl', 'output.append_timestamp=false'];
    const { code, answer, stderr } = await document<Answer>(workspace.folder, args);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(
      'note: config: output.format is pkl, but pickle files are not supported, so trajectories are written as JSON lines to pickled.jsonl\n',
    );
    expect(basename(answer.evaluation!.files.trajectories)).toBe('pickled.jsonl');
    expect(existsSync(join(workspace.folder, 'outputs/pickled.pkl'))).toBe(false);
  });
});

describe('episodes longer than the model has positions', () => {
  const length = 'actor_rollout_ref.rollout.max_model_len';
  const sentence = (n: number) =>
    `config: ${length} is ${n}, but ragen-tiny supports only 2048 positions: use at most 2048`;

  test.each([
    ['an override', ['--config-name', 'base', 'model_path=ragen-tiny', `${length}=3600`], 3600],
    ['the file that names the model', ['--config-name', 'both'], 3000],
    ['a file over the one that names the model', ['--config-name', 'above'], 2500],
  ])('are refused before a run folder is created when %s requests them', async (_, args, asked) => {
    const rollout = (n: number) => `actor_rollout_ref: {rollout: {max_model_len: ${n}}}`;
    workspace.write('config/both.yaml', `defaults: [base]\nmodel_path: ragen-tiny\n${rollout(3000)}\n`);
    workspace.write('config/fits.yaml', `defaults: [base]\nmodel_path: ragen-tiny\n${rollout(1000)}\n`);
    workspace.write('config/above.yaml', `defaults: [fits]\n${rollout(2500)}\n`);
    const before = runsOf(workspace.folder).length;
    for (const command of ['train', 'eval', 'plan', 'config']) {
      const { code, stderr } = await ragen(workspace.folder, [command, ...args]);
      expect({ command, code, stderr }).toEqual({ command, code: 1, stderr: `${sentence(asked)}\n` });
    }
    expect(runsOf(workspace.folder)).toHaveLength(before);
  });

  test('are shortened with a note if the length was set for another model, and the run matches its configuration', async () => {
    workspace.write('config/mine.yaml', 'defaults: [base]\nmodel_path: ragen-tiny\n');
    const args = ['--config-name', 'mine', ...tiny().slice(1), ...oneStep];
    const { code, answer, stderr } = await document<Answer>(workspace.folder, ['train', ...args]);
    expect(code, stderr).toBe(0);
    const note = `config: ${length} is lowered from 3600 to 2048, the maximum number of positions of ragen-tiny`;
    expect(stderr).toContain(`note: ${note}\n`);
    const again = await document<{ config: { actor_rollout_ref: { rollout: object } }; notes: string[] }>(
      workspace.folder,
      ['config', ...args],
    );
    expect(again.answer.config.actor_rollout_ref.rollout).toMatchObject({ max_model_len: 2048 });
    expect(again.answer.notes).toContain(note);
    const { manifest } = { manifest: JSON.parse(readFileSync(join(answer.folder, 'manifest.json'), 'utf8')) as object };
    expect(manifest).toMatchObject({ config: { actor_rollout_ref: { rollout: { max_model_len: 2048 } } } });
    // Without one override, the file's value applies again. The configuration is recognized as the run's source
    // although max_model_len was lowered.
    const fewer = args.slice(2).filter(override => !override.startsWith('workbench.threads'));
    const from = ['train', '--from', basename(answer.folder), ...fewer];
    const second = await document<Answer>(workspace.folder, from);
    expect(second.code, second.stderr).toBe(0);
  });
});
