// `ragen eval` of local models: success and pass@k counted from the episodes, trajectories, resume after a kill, a
// run's adapters, and episodes of an environment that the run was not trained on.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { EvaluationSummary } from '../../../../extension/trainer/evaluation/evaluation-summary';
import type { TrajectoryLine } from '../../../../extension/trainer/evaluation/trajectory-line';
import { document, kill, killAll, ragen, readRun, runsOf, statusOf, until } from '../../../support/terminal';
import { makeWorkspace } from '../../../support/workspace';
import type { Workspace } from '../../../support/workspace';

interface Answer {
  run: string;
  folder: string;
  state: string;
  validation: { step: number; success: number }[];
  evaluation: EvaluationSummary;
}

/** Overrides for 140 groups of 2 episodes, more than are played at once. */
const many = [
  'es_manager.val.env_groups=140',
  'es_manager.val.group_size=2',
  'es_manager.val.env_configs.n_groups=[140]',
];
const evaluated = ['eval', '--config-name', 'words', ...many];

let workspace: Workspace;
let whole: Answer;
const linesOf = (file: string): TrajectoryLine[] =>
  readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line) as TrajectoryLine);

beforeAll(async () => {
  workspace = makeWorkspace();
  const { code, stderr, answer } = await document<Answer>(workspace.folder, evaluated);
  expect(code, stderr).toBe(0);
  whole = answer;
});
afterAll(async () => {
  await killAll(workspace.folder);
  workspace.remove();
});

describe('the summary', () => {
  test('counts success and pass@k over the groups, with confidence intervals', () => {
    const { episodes } = readRun(whole.folder);
    expect(episodes.length).toBe(280);
    const solvedIn = (group: number): number => episodes.filter(e => e.group_id === group && e.success).length;
    const groups = Array.from({ length: 140 }, (_, group) => solvedIn(group));
    const { overall, tags, group_size } = whole.evaluation;
    const mean = groups.reduce((sum, c) => sum + c / 2, 0) / 140;
    expect(mean).toBeGreaterThan(0.05);
    expect(mean).toBeLessThan(0.95);
    expect(overall.success!.mean).toBeCloseTo(mean, 12);
    expect(overall.pass_at['1'].mean).toBeCloseTo(mean, 12);
    expect(overall.pass_at['2'].mean).toBeCloseTo(groups.filter(c => c > 0).length / 140, 12);
    expect(overall.success!.low).toBeLessThan(mean);
    expect(overall.success!.high).toBeGreaterThan(mean);
    expect([group_size, overall.groups, overall.episodes]).toEqual([2, 140, 280]);
    expect(tags.Words.success).toEqual(overall.success);
    expect(tags.Words.metrics['pass@2']).toBeCloseTo(overall.pass_at['2'].mean, 12);
    expect(whole.validation).toMatchObject([{ step: 0, success: expect.closeTo(mean, 12) }]);
  });

  test('contains the number of tokens and the entropy of each trajectory', () => {
    const { episodes } = readRun(whole.folder);
    const lines = linesOf(whole.evaluation.files.trajectories);
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(lines.map((_, i) => `traj_${i}`));
    for (const { metadata } of lines) {
      const { tokens, success, score } = episodes.find(({ env_id }) => env_id === metadata.env_id)!;
      expect(metadata).toMatchObject({ success, total_reward: score, 'Words/success': Number(success) });
      expect(metadata.n_tokens).toBe(tokens.mask.filter(bit => bit === 1).length);
      // The vocabulary has 800 tokens; an entropy lies between 0 and the uniform distribution's.
      expect(metadata.entropy).toBeGreaterThan(0);
      expect(metadata.entropy).toBeLessThan(Math.log(900));
    }
    const total = lines.reduce((sum, { metadata }) => sum + (metadata.n_tokens as number), 0);
    expect(whole.evaluation.generated_tokens).toBe(total);
    const weighted = lines.reduce((sum, { metadata }) => sum + Number(metadata.entropy) * Number(metadata.n_tokens), 0);
    expect(whole.evaluation.entropy).toBeCloseTo(weighted / total, 9);
    // The configuration samples at temperature 1 without top-k and top-p, so the mean of −log p estimates the same
    // entropy.
    const drawn = episodes.flatMap(({ tokens }) => tokens.logprobs.filter(x => x !== null));
    expect(-drawn.reduce((sum, x) => sum + x, 0) / drawn.length).toBeCloseTo(whole.evaluation.entropy!, 0);
  });

  test('is identified by its episodes, because it has no steps', async () => {
    const progress = { step: 0, total_steps: 0, episodes: { done: 280, of: 280 } };
    expect(readRun(whole.folder).status).toMatchObject({ state: 'finished', ...progress });
    const { answer: rows } = await document<({ run: string } & typeof progress)[]>(workspace.folder, ['runs']);
    expect(rows.find(({ run }) => run === whole.run)).toMatchObject(progress);
    const { stdout } = await ragen(workspace.folder, ['runs']);
    expect(stdout.split('\n').find(line => line.startsWith(whole.run))).toMatch(/finished +280\/280 /);
  });

  test('is stored beside the trajectories and in the run folder', () => {
    const { files } = whole.evaluation;
    expect(files.trajectories).toBe(join(workspace.folder, 'results', whole.run, 'val_rollouts.jsonl'));
    for (const file of [files.summary, join(whole.folder, 'evaluation.json')])
      expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(whole.evaluation);
  });
});

test('a killed evaluation continues with the remaining episodes, with the same results', async () => {
  const hold = join(workspace.folder, 'hold');
  const held = [...evaluated, `custom_envs.Words.env_config.hold=${hold}`];
  const before = new Set(runsOf(workspace.folder));
  const { answer } = await document<{ folder: string }>(workspace.folder, [...held, '--detach']);
  const file = join(answer.folder, 'episodes/val-000000.jsonl');
  await until('the first wave is played', () => existsSync(file) && readFileSync(file, 'utf8').includes('\n'));
  writeFileSync(`${hold}.val`, ''); // the episodes of the second wave wait in their environments
  if (existsSync(join(answer.folder, 'lease'))) await kill(answer.folder).catch(() => undefined);
  const kept = readFileSync(file, 'utf8').split('\n').length - 1;
  writeFileSync(file, `${readFileSync(file, 'utf8')}{"id": "val-0000`); // an incomplete line
  rmSync(`${hold}.val`, { force: true });
  const resumed = await document<Answer>(workspace.folder, ['resume', basename(answer.folder)]);
  expect(resumed.code, resumed.stderr).toBe(0);
  expect(kept).toBeGreaterThan(0);
  expect(kept).toBeLessThan(280);
  // The resumed run computes entropies in other passes, so entropies are equal only up to rounding.
  const exactly = ({ metadata: { entropy: _, 'Words/entropy': __, ...metadata }, ...line }: TrajectoryLine) => ({
    ...line,
    metadata,
  });
  const { evaluation } = resumed.answer;
  const [lines, wholeLines] = [evaluation, whole.evaluation].map(({ files }) => linesOf(files.trajectories));
  expect(lines.map(exactly)).toEqual(wholeLines.map(exactly));
  expect(evaluation.overall).toEqual(whole.evaluation.overall);
  expect(evaluation.entropy).toBeCloseTo(whole.evaluation.entropy!, 5);
  expect(runsOf(workspace.folder).length).toBe(before.size + 1);
});

test('output.dir, filename and append_timestamp set the output path; RAGEN’s format can be selected', async () => {
  const { code, stderr, answer } = await document<Answer>(workspace.folder, [
    ...['eval', '--config-name', 'words', 'workbench.compat=ragen'],
    ...['output.dir=out/here', 'output.filename=rollouts.pkl', 'output.append_timestamp=true'],
    'actor_rollout_ref.rollout.val_kwargs.logprobs=0',
  ]);
  expect(code, stderr).toBe(0);
  const [, day, time] = /^(\d{8})-(\d{6})-/.exec(answer.run)!;
  const { files, entropy } = answer.evaluation;
  expect(files.trajectories).toBe(join(workspace.folder, `out/here/rollouts_${day}_${time}.jsonl`));
  expect(files.summary).toBe(join(workspace.folder, `out/here/rollouts_${day}_${time}_summary.json`));
  expect(entropy).toBeNull();
  const lines = linesOf(files.trajectories);
  expect(lines.some(({ metadata }) => metadata['Words/success'] === 1)).toBe(true);
  for (const { metadata } of lines) {
    expect(metadata.success).toBe(false);
    expect(metadata).not.toHaveProperty('entropy');
  }
});

test('a run trained with adapters is evaluated with them, on environments of another configuration too', async () => {
  const lora = ['lora.rank=2', 'trainer.total_training_steps=2', 'actor_rollout_ref.actor.optim.lr=0.05'];
  const trained = await document<Answer>(workspace.folder, ['train', '--config-name', 'words', ...lora]);
  expect(trained.code, trained.stderr).toBe(0);
  const again = await document<Answer>(workspace.folder, ['eval', '--run', trained.answer.run]);
  expect(again.code, again.stderr).toBe(0);
  const last = (folder: string, step: number) =>
    readRun(folder)
      .episodes.filter(e => e.mode === 'val' && e.step === step)
      .map(({ tokens }) => tokens.ids.slice(0, tokens.mask.indexOf(1)));
  expect(last(again.answer.folder, 0)).toEqual(last(trained.answer.folder, 2));
  const larger = await document<Answer>(workspace.folder, [
    ...['eval', '--config-name', 'quickstart', '--run', trained.answer.run],
    ...['es_manager.val.env_configs.tags=[LargerSokoban,QuickFrozenLake]', 'es_manager.val.env_configs.n_groups=[2,2]'],
    ...['es_manager.val.env_groups=4', 'agent_proxy.max_turn=1'],
    ...['actor_rollout_ref.rollout.max_model_len=512', 'actor_rollout_ref.rollout.response_length=8'],
  ]);
  expect(larger.code, larger.stderr).toBe(0);
  expect(Object.keys(larger.answer.evaluation.tags)).toEqual(['LargerSokoban', 'QuickFrozenLake']);
  expect(larger.answer.evaluation.overall.episodes).toBe(4);
});

test('prints success, pass@k and the path of the results', async () => {
  const { stdout, code, stderr } = await ragen(workspace.folder, [
    ...['eval', '--config-name', 'words', '--model', 'models/random'],
    ...['es_manager.val.group_size=4'],
  ]);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^ +episodes +success \(95 %\) +pass@2 +pass@4\nWords +32 +\d+\.\d % \(\d+\.\d–\d+\.\d\)/);
  expect(stdout).toMatch(/\nTrajectories: .*val_rollouts\.jsonl\nSummary: .*val_rollouts_summary\.json\n$/);
  expect(stderr).toMatch(/\n32\/32 episodes\n$/);
  expect(stderr).not.toContain('in-group std'); // an evaluation has no steps
  expect(statusOf(runsOf(workspace.folder).at(-1)!)!.state).toBe('finished');
});

test('contradictory options are refused', async () => {
  const said = async (...args: string[]): Promise<string> => (await ragen(workspace.folder, ['eval', ...args])).stderr;
  expect(await said('--config-name', 'words', '--checkpoint', 'step-000001')).toMatch(
    /^eval: --checkpoint .* needs a run/,
  );
  expect(await said('--run', whole.run, '--model', 'ragen-tiny')).toMatch(/^eval: --run .* already selects the model/);
});
