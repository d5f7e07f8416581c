// An episode of two turns with a vocabulary of few tokens, small enough to be compared in full.
import { episodeSchema } from '../../../../extension/run-data/episode';
import type { Episode } from '../../../../extension/run-data/episode';

const words = [
  '<think>',
  'go',
  ' up',
  ' right',
  'Up',
  ' ||',
  ' Fly',
  'Right',
  'x',
  '</think>',
  '<answer>',
  '</answer>',
];
const special = '<|im_end|>';

/** A tokenizer.json whose ids are the words' indices; the last one is special. */
export const lakeTokenizer = {
  added_tokens: [{ id: words.length, content: special, special: true }],
  decoder: { type: 'ByteLevel' },
  model: { vocab: Object.fromEntries(words.map((word, id) => [word.replaceAll(' ', 'Ġ'), id])) },
};
const idsOf = (...tokens: string[]) => tokens.map(token => [...words, special].indexOf(token));

/** Creates a new episode each time, so that a test may modify it. */
export function lakeEpisode(): Episode {
  const prompt = idsOf('x', 'x', '<think>');
  const first = idsOf('go', ' up', '</think>', '<answer>', 'Up', ' ||', ' Fly', '</answer>', special);
  const second = idsOf('go', ' right', '</think>', '<answer>', 'Right', '</answer>', special);
  const ids = [...prompt, ...first, ...prompt, ...second];
  const mask = [...prompt.map(() => 0), ...first.map(() => 1), ...prompt.map(() => 0), ...second.map(() => 1)];
  const spans = [
    [3, 12],
    [15, 22],
  ];
  const turn = { info: {}, finish: 'stop' };
  return episodeSchema.parse({
    id: 'train-000018-g003-m05',
    step: 18,
    mode: 'train',
    group_id: 3,
    member: 5,
    env_id: 29,
    tag: 'Lake',
    environment: { name: 'frozen_lake', version: 'eb412af6c4527764' },
    seed: 10272,
    terminated: true,
    truncated: false,
    success: true,
    reward: 1,
    penalty: -0.1,
    score: 0.9,
    advantage: 0.5,
    kept: true,
    turns: [
      {
        ...turn,
        turn: 1,
        state: '_G\nP_',
        actions_left: 5,
        raw: '<think>go up</think><answer>Up || Fly</answer>',
        thought: 'go up',
        answer: 'Up || Fly',
        parsed: ['Up', 'Fly'],
        executed: ['Up'],
        reward: 0,
        penalty: 0,
        span: spans[0],
      },
      {
        ...turn,
        turn: 2,
        state: 'PG\n__',
        actions_left: 4,
        raw: '<think>go right</think><answer>Right</answer>',
        thought: 'go right',
        answer: 'Right',
        parsed: ['Right'],
        executed: ['Right'],
        reward: 1,
        penalty: -0.1,
        span: spans[1],
      },
    ],
    final_state: '_√\n__',
    metrics: {},
    messages: [
      { role: 'system', content: 'Walk to the goal.' },
      { role: 'user', content: 'Turn 1' },
    ],
    tokens: {
      ids,
      mask,
      logprobs: mask.map((bit, i) => (bit === 1 ? -0.1 * (1 + (i % 4)) : null)),
      advantages: mask.map(bit => 0.5 * bit),
    },
  });
}
