// prime-rl: rollouts that were not trained on are shown as filtered, once it is known that no step trains on them.
import { mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { attachOnce, samples } from '../../support/attached';
import { temporaryFolder } from '../../support/temporary-folder';

const workspace = temporaryFolder();
const old = new Date(Date.now() - 60_000); // a file that changed a moment ago may still be written

/** An episode as verifiers writes it. */
const episode = (id: string, reward: number, errors: unknown[] = []) => ({
  ...{ id, env: { id: 'lake' }, group: { id: `g-${id.slice(0, 1)}` }, ok: errors.length === 0, errors },
  task: { data: { prompt: 'Where?' }, hash: 'h' },
  traces:
    errors.length > 0
      ? []
      : [
          {
            version: 1,
            nodes: [
              { message: { role: 'user', content: 'Where?' }, sampled: false },
              { parent: 0, message: { role: 'assistant', content: `at ${id}` }, sampled: true },
            ],
            rewards: { goal: { score: reward, weight: 2 } },
          },
        ],
});
type Line = ReturnType<typeof episode>;

/** Creates a run, and returns a function that writes the rollouts of a step. */
function primeRun() {
  const folder = join(workspace(), 'outputs');
  mkdirSync(join(folder, 'configs'), { recursive: true });
  writeFileSync(join(folder, 'configs/rl.json'), '{"max_steps": 9}');
  return {
    folder,
    write(step: number, subset: 'all' | 'effective', lines: readonly Line[]) {
      const file = join(folder, `rollouts/step_${step}/train/${subset}/traces.jsonl`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, lines.map(line => `${JSON.stringify(line)}\n`).join(''));
      utimesSync(file, old, old);
    },
  };
}

const kept = (episodes: Record<string, { messages: { content: string }[]; kept: boolean | null }[]>) =>
  Object.fromEntries(
    Object.entries(episodes).map(([step, all]) => [
      step,
      all.map(each => [each.messages.at(-1)!.content, each.kept] as const),
    ]),
  );

it('a rollout is filtered if neither its step nor one of the next two trained on it', async () => {
  const { folder, write } = primeRun();
  const [a, b, c, d] = [episode('a1', 1), episode('b1', 0), episode('c1', 0), episode('d1', 1)];
  const failed = episode('e1', 0, [{ type: 'SandboxError', message: 'no sandbox' }]);
  write(1, 'all', [a, b, c, failed]);
  const arrived = await attachOnce(workspace(), folder);
  expect(kept(arrived.episodes)).toEqual({
    'step-000001': [['at a1', null], ['at b1', null], ['at c1', null], ['Where?', false]], // prettier-ignore
  });
  const { error, reward, turns } = arrived.episodes['step-000001'][3];
  expect([error?.includes('no sandbox'), reward, turns]).toEqual([true, 0, []]);

  write(1, 'effective', [a]);
  write(2, 'all', [d]);
  const shipped = await attachOnce(workspace(), folder, { earlier: arrived.folder });
  expect(kept(shipped.episodes)).toEqual({
    'step-000001': [['at a1', true], ['at b1', null], ['at c1', null], ['Where?', false]], // prettier-ignore
    'step-000002': [['at d1', null]],
  });

  write(2, 'effective', [b]); // arrived in step 1, trained on in step 2
  write(3, 'effective', [d]);
  const decided = await attachOnce(workspace(), folder, { earlier: arrived.folder });
  expect(kept(decided.episodes)).toEqual({
    'step-000001': [['at a1', true], ['at c1', false], ['Where?', false]], // prettier-ignore
    'step-000002': [['at b1', true]],
    'step-000003': [['at d1', true]],
  });
  expect(decided.episodes['step-000001'][0]).toMatchObject({ reward: 2, metrics: { 'components/goal': 1 } });
  expect(readFileSync(decided.folder.file('events.jsonl'), 'utf8')).not.toContain('could not be read');
});

it('groups that the trainer filtered count for the deviation of rewards in groups', async () => {
  const { folder, write } = primeRun();
  const alike = [episode('a1', 1), episode('a2', 1)];
  const mixed = [episode('b1', 1), episode('b2', 0)];
  write(1, 'all', [...alike, ...mixed]);
  for (const step of [1, 2, 3]) write(step, 'effective', step === 1 ? mixed : []);
  const { metrics } = await attachOnce(workspace(), folder);
  expect(metrics[0]).toMatchObject({ step: 1, 'rollout/zero_variance_ratio': 0.5, 'critic/score/mean': 1.5 });
});

it('the sample: trained rollouts are kept, and the failed one is shown with its error', async () => {
  const { episodes } = await attachOnce(workspace(), join(samples, 'prime-rl'));
  expect(episodes['step-000001'].map(each => each.kept)).toEqual([true, true, true, true, false]);
  expect(episodes['step-000001'][4].error).toContain('the sandbox did not start');
  expect(episodes['val-000003'].map(each => each.kept)).toEqual([null]);
});

it('a repeated step, whose folder the trainer has removed, is read again', async () => {
  const { folder, write } = primeRun();
  write(1, 'effective', [episode('a1', 1)]);
  write(2, 'effective', [episode('b1', 1), episode('b2', 1)]);
  const first = await attachOnce(workspace(), folder);
  rmSync(join(folder, 'rollouts/step_2'), { recursive: true });
  write(2, 'effective', [episode('c1', 1)]);
  const { episodes } = await attachOnce(workspace(), folder, { earlier: first.folder });
  expect(kept(episodes)).toEqual({ 'step-000001': [['at a1', true]], 'step-000002': [['at c1', true]] });
});
