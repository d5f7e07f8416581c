// Proposed mappings for JSON lines whose fields have unusual names, and what is read with them.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { proposalFor } from '../../../extension/foreign-runs/mapping-guess';
import { recognise } from '../../../extension/foreign-runs/recognition';
import { SourceFolder } from '../../../extension/foreign-runs/source-folder';
import {
  mappingComments,
  mappingProblem,
  mappingSchema,
  mappingYaml,
  UnmappedFields,
} from '../../../extension/run-data/mapping-proposal';
import { attachOnce } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();

function lines(name: string, records: readonly unknown[]): string {
  const file = join(workspace(), 'files', name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, records.map(record => `${JSON.stringify(record)}\n`).join(''));
  return file;
}

const rollouts = [1, 2, 3, 4].map(i => ({
  sample: i,
  it: Math.ceil(i / 2),
  problem_id: `q${i % 2}`,
  question_text: 'How many moves are left?',
  answer_text: `There are ${i} moves left.`,
  points: i / 4,
  is_solved: i > 2,
  env_name: 'lake',
  loss_weight: 1,
}));

async function unmapped(path: string): Promise<UnmappedFields> {
  const error: unknown = await recognise(await SourceFolder.open(path)).catch((thrown: unknown) => thrown);
  if (!(error instanceof UnmappedFields)) throw new Error(`not refused with a proposal: ${String(error)}`);
  return error;
}

it('the fields of rollouts are guessed, and the run is read with the proposal', async () => {
  const file = lines('rollouts.jsonl', rollouts);
  const { proposal } = await unmapped(file);
  expect(proposal.contents).toBe('rollouts');
  expect(proposal.mapping.fields).toEqual({
    step: 'it',
    prompt: 'question_text',
    completion: 'answer_text',
    reward: 'points',
    success: 'is_solved',
    group: 'problem_id',
    tag: 'env_name',
  });
  expect(mappingProblem(proposal)).toBeUndefined();
  const { episodes } = await attachOnce(workspace(), file, { mapping: proposal.mapping });
  const all = Object.values(episodes).flat();
  expect(all.map(({ step, reward, success, tag, group_id }) => [step, reward, success, tag, group_id])).toEqual([
    [1, 0.25, false, 'lake', 0],
    [1, 0.5, false, 'lake', 1],
    [2, 0.75, true, 'lake', 0],
    [2, 1, true, 'lake', 1],
  ]);
  expect(all[0].turns[0]).toMatchObject({ state: 'How many moves are left?', answer: 'There are 1 moves left.' });
});

it('messages are recognised by their contents, and fields of objects by their path', async () => {
  const talk = [
    { role: 'user', content: 'two?' },
    { role: 'assistant', content: 'two' },
  ];
  const file = lines('talk.jsonl', [{ talk, info: { points: 0.5, episode_return_sum: 1 }, global_batch: 7 }]);
  const { proposal } = await unmapped(file);
  expect(proposal.mapping.fields).toMatchObject({ messages: 'talk', step: 'global_batch' });
  expect(proposal.mapping.fields?.['reward']).toMatch(/^info\./);
  const { episodes } = await attachOnce(workspace(), file, { mapping: proposal.mapping });
  expect(Object.keys(episodes)).toEqual(['step-000007']);
});

it('metrics are renamed where the meaning is clear, also in objects', async () => {
  const record = (it: number) => ({ it, train: { reward: it / 10, grad_norm: 0.5, weird: 3 }, val_success_rate: 0.25 });
  const file = lines('log.jsonl', [record(1), record(2)]);
  const { proposal } = await unmapped(file);
  expect(proposal).toMatchObject({ contents: 'metrics', mapping: { fields: { step: 'it' } } });
  const { metrics } = await attachOnce(workspace(), file, { mapping: proposal.mapping });
  expect(metrics).toMatchObject([
    { step: 1, 'critic/score/mean': 0.1, 'actor/grad_norm': 0.5, 'val-env/rollout/success': 0.25, 'train/weird': 3 },
    { step: 2, 'critic/score/mean': 0.2 },
  ]);
  expect(metrics[0]).not.toHaveProperty('it');
});

it('rollouts without a field for the reward are not shown as metrics of steps', async () => {
  const file = lines('a.jsonl', [{ step: 1, answer_text: 'so it is', points: 1 }]);
  expect((await unmapped(file)).proposal.mapping.fields).toMatchObject({ step: 'step', reward: 'points' });
  // A text alone does not make a rollout.
  const log = lines('b.jsonl', [{ step: 1, note: 'so it is', loss: 1 }]);
  expect((await attachOnce(workspace(), log)).metrics).toMatchObject([{ step: 1, loss: 1 }]);
});

it('a field that the user excludes is not read under its usual name', async () => {
  const file = lines('c.jsonl', [{ step: 3, output: 'yes', score: 1, success: true, uid: 'a' }]);
  const { episodes } = await attachOnce(workspace(), file, { mapping: { fields: { success: '', group: '' } } });
  expect(episodes['step-000003'][0]).toMatchObject({ success: null, reward: 1 });
});

it('a mapping that does not fit is refused with the fields of the file', async () => {
  const file = lines('d.jsonl', rollouts);
  await expect(attachOnce(workspace(), file, { mapping: { fields: { step: 'nowhere' } } })).rejects.toThrow(
    /mapping \(nowhere\).*whose fields are sample, it, problem_id/,
  );
});

it('the YAML of a proposal is the mapping, with the first values as comments', async () => {
  const { proposal } = await unmapped(lines('rollouts.jsonl', rollouts));
  const text = mappingYaml(proposal.mapping, mappingComments(proposal));
  expect(mappingSchema.parse(parse(text))).toEqual(proposal.mapping);
  expect(text).toContain('#   points (reward): 0.25');
  expect(mappingProblem({ contents: 'rollouts', mapping: { fields: { completion: 'a' } } })).toContain('reward');
  expect(mappingProblem({ contents: 'metrics', mapping: {} })).toContain('step');
  expect(existsSync(join(workspace(), '.ragen', 'mappings'))).toBe(false);
});

it('records without numbers, and files that are no JSON lines, have no proposal', async () => {
  expect(proposalFor('a.jsonl', [{ a: 'b', c: null, d: [] }])).toBeUndefined();
  const file = lines('e.jsonl', ['just text']);
  await expect(recognise(await SourceFolder.open(file))).rejects.toThrow('known: prime-rl');
});
