// Stored rollouts as pairs of prompt and thought, and the judgement of scored steps, with values by hand.
import { expect, it } from 'vitest';
import type { CollapseDiagnosis } from '../../../../extension/run-data/diagnostics';
import { episodeRecord } from '../../../../extension/foreign-runs/episode-record';
import type { ChatMessage } from '../../../../extension/foreign-runs/adapter';
import { readTokenizer } from '../../../../extension/models/weights/model-folder';
import {
  metricsOf,
  scoreStep,
  StepJudge,
  storedPairs,
} from '../../../../extension/trainer/inspection/stored-diagnosis';

const tokenizer = readTokenizer('media/models/ragen-tiny');

function episode(group: number, member: number, responses: readonly string[], error?: string) {
  const messages = responses.flatMap((content, i): ChatMessage[] => [
    { role: 'user', content: `state ${group} of turn ${i + 1}` },
    { role: 'assistant', content },
  ]);
  const rollout = { group: String(group), tag: 'lake', messages, reward: 0, success: null, ...(error && { error }) };
  return episodeRecord(rollout, { mode: 'train', step: 1, group_id: group, member, env_id: member });
}
const thinking = (thought: string): string => `<think> ${thought} </think><answer>Up</answer>`;

it('a prompt is the conversation before the response, its header and <think>', () => {
  const pairs = storedPairs(
    [episode(0, 0, [thinking('go up'), 'no thought', thinking('go left')]), episode(1, 1, ['x'], 'it failed')],
    tokenizer,
    1000,
  );
  expect(pairs).toMatchObject({ turns: 3, thoughts: 2, tooLong: 0 });
  expect(pairs.episodes).toHaveLength(1);
  const [{ first, turns }] = pairs.episodes;
  expect(turns.map(({ turn, reasoning }) => [turn, tokenizer.decode(reasoning)])).toEqual([
    [1, 'go up'],
    [3, 'go left'],
  ]);
  expect(first).toBe(turns[0]);
  const text = tokenizer.decode(turns[1].prompt, { special: true });
  expect(text).toMatch(/<think>$/);
  for (const part of ['state 0 of turn 1', 'no thought', 'state 0 of turn 3']) expect(text).toContain(part);
  expect(text).not.toContain('go left');
});

it('thoughts that do not fit into the model are left out and counted', () => {
  const [short, long] = [thinking('go'), thinking('go up '.repeat(50))];
  const { episodes, tooLong } = storedPairs([episode(0, 0, [short]), episode(0, 1, [long])], tokenizer, 60);
  expect(tooLong).toBe(1);
  expect(episodes.map(({ turns }) => turns.length)).toEqual([1, 0]);
});

/** An engine under which each thought is e times as likely per token under the prompts of its own state. */
const engine = {
  crossScore: (prompts: Int32Array[], texts: Int32Array[]) =>
    Promise.resolve(
      texts.map(text =>
        Float64Array.from(prompts, prompt => {
          const state = /state (\d)/.exec(tokenizer.decode([...prompt]))![1];
          return (tokenizer.decode([...text]).includes(state) ? -1 : -2) * text.length;
        }),
      ),
    ),
};
const scorer = { engine, tokenizer, budget: { maxTokens: 100, maxRows: 4 }, temperature: 1, model: 'hand' };

it('scores thoughts under all prompts, and judges the steps in order', async () => {
  const episodes = [0, 1].flatMap(group => [0, 1].map(member => episode(group, member, [thinking(`at ${group}`)])));
  const pairs = storedPairs(episodes, tokenizer, 1000);
  const judge = new StepJudge();
  const judged: CollapseDiagnosis[] = [];
  for (const step of [1, 2]) {
    const { diagnosis, note } = await scoreStep(step, pairs, 64, scorer);
    expect(note).toBeUndefined();
    expect(diagnosis.model).toBe('hand');
    judged.push(judge.judge(diagnosis));
  }
  const metrics = metricsOf(judged[0]);
  // log p is −1 under the own prompt and −2 under the other, so I = −1 − ln((e⁻¹ + e⁻²)/2).
  const information = -1 - Math.log((Math.exp(-1) + Math.exp(-2)) / 2);
  expect(metrics['collapse_first_turn_sample/mi_estimate']).toBeCloseTo(information, 6);
  expect(metrics['collapse_first_turn_sample/conditional_entropy_est']).toBeCloseTo(1, 9);
  expect(metrics['collapse_first_turn_sample/retrieval_accuracy']).toBe(1);
  expect(judged[1].families[0].metrics.mi_estimate).toBe(judged[0].families[0].metrics.mi_estimate);
  expect(judged[0].families.map(({ regime }) => regime)).toEqual(['diverse reasoning', 'diverse reasoning']);
});

it('says why a step has no family', async () => {
  const none = storedPairs([episode(0, 0, ['up'])], tokenizer, 1000);
  expect(await scoreStep(1, none, 64, scorer)).toMatchObject({
    diagnosis: { families: [] },
    note: 'none of its 1 response has a thought',
  });
  const one = storedPairs([episode(0, 0, [thinking('x')])], tokenizer, 1000);
  expect((await scoreStep(1, one, 64, scorer)).note).toBe('its thoughts have fewer than two different prompts');
  const differing = [episode(0, 0, [thinking('x')]), { ...episode(1, 1, [thinking('x')]), group_id: 0 }];
  const { note } = await scoreStep(1, storedPairs(differing, tokenizer, 1000), 64, scorer);
  expect(note).toContain('the first prompts of group 0 differ');
});
