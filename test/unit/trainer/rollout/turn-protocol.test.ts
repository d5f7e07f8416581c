// The text protocol: parsing, user messages, the system message, and numbers as Python prints them.
import { describe, expect, it } from 'vitest';
import { pythonFloat } from '../../../../extension/trainer/rollout/python-float';
import { systemMessage } from '../../../../extension/trainer/rollout/system-message';
import {
  generationPrefix,
  parseResponse,
  rewardText,
  turnText,
} from '../../../../extension/trainer/rollout/turn-protocol';
import { corridor } from './scripted-rollout';

const think = { enable_think: true, action_sep: '||', max_actions_per_turn: 2 };
const plain = { ...think, enable_think: false };

describe('parse', () => {
  it.each([
    {
      raw: '<think>a</think> <answer>Up || Left || Up</answer> bye',
      actions: ['Up', 'Left'],
      llm_response: '<think>a</think><answer>Up || Left</answer>',
    },
    {
      raw: '<think>a</think>x<answer>Up</answer>',
      actions: [],
      llm_response: '<think>a</think>x<answer>Up</answer>',
    },
    { raw: '<think>a <answer>Up</answer>', actions: [], llm_response: '<think>a <answer>Up</answer>' },
    {
      raw: '<think>a<think>b</think><answer> || </answer>',
      actions: [],
      llm_response: '<think>ab</think><answer>||</answer>',
    },
    {
      raw: '<think>p</think><answer>Jump</answer>',
      actions: ['Jump'],
      llm_response: '<think>p</think><answer>Jump</answer>',
    },
    {
      raw: '<think>two\nlines</think>\n\n<answer>Up||<|im_end|> Down</answer>',
      actions: ['Up', 'Down'],
      llm_response: '<think>two\nlines</think><answer>Up|| Down</answer>',
    },
    {
      raw: '<think> a <think></think><answer>Up</answer>',
      actions: ['Up'],
      llm_response: '<think>a</think><answer>Up</answer>',
    },
  ])('reads $raw', ({ raw, actions, llm_response }) => {
    expect(parseResponse(raw, think)).toMatchObject({ actions, llm_response });
  });

  it('takes a whole answer as one action, including separators', () => {
    const code = 'if (a || b) {\n  go() || stop();\n}';
    const raw = `<think>x</think><answer>\n${code}\n</answer>`;
    const { actions, answer } = parseResponse(raw, { ...think, max_actions_per_turn: 1 }, true);
    expect([actions, answer]).toEqual([[code], code]);
    expect(parseResponse('<think>x</think><answer> </answer>', think, true).actions).toEqual([]);
  });

  it('returns thought and answer, or null when the format is violated', () => {
    expect(parseResponse('<think> why </think><answer> Up </answer>', think)).toMatchObject({
      thought: 'why',
      answer: 'Up',
    });
    expect(parseResponse('<think>why', think)).toMatchObject({ thought: null, answer: null, actions: [] });
  });

  it('takes only the first answer when thinking is off', () => {
    expect(parseResponse('<answer>Up</answer><answer>Down</answer>', plain)).toEqual({
      thought: null,
      answer: 'Up',
      actions: ['Up'],
      llm_response: '<answer>Up</answer>',
    });
    expect(generationPrefix(plain)).toBe('<answer>');
    expect(generationPrefix(think)).toBe('<think>');
  });

  it('splits on the configured separator', () => {
    const protocol = { ...think, action_sep: ',' };
    expect(parseResponse('<think></think><answer>a,b,c</answer>', protocol)).toMatchObject({
      actions: ['a', 'b'],
      answer: 'a , b',
    });
  });
});

describe('answers in <ans>', () => {
  const short = { ...think, answer_tag: 'ans' as const };

  it('are parsed from that tag only', () => {
    expect(parseResponse('<think>a</think> <ans>Up || Left || Up</ans> bye', short)).toEqual({
      thought: 'a',
      answer: 'Up || Left',
      actions: ['Up', 'Left'],
      llm_response: '<think>a</think><ans>Up || Left</ans>',
    });
    expect(parseResponse('<think>a</think><answer>Up</answer>', short).answer).toBeNull();
    expect(parseResponse('<think>a</think><ans>Up</ans>', think).answer).toBeNull();
    expect(parseResponse('<think>a <ans>b</think><ans>Up<answer></ans>', short)).toMatchObject({
      thought: 'a b',
      actions: ['Up'],
    });
    const whole = parseResponse('<ans>a || b</ans>', { ...short, enable_think: false }, true);
    expect(whole).toMatchObject({ thought: null, actions: ['a || b'] });
  });

  it('are requested and shown, whatever tag the environment’s text contains', () => {
    expect(generationPrefix(short)).toBe('<think>');
    expect(generationPrefix({ ...short, enable_think: false })).toBe('<ans>');
    const prompt = { turn: 1, state: 'say <answer> A </answer>', actions_left: 1, warn: false, max_tokens: 9 };
    const text = turnText(prompt, short);
    expect(text).toContain('State:\nsay <ans> A </ans>\n');
    expect(text).toContain('<think> [Your thoughts] </think> <ans> [your answer] </ans> with');
    const instruction = 'Act with finish[<answer>], as <answer>x</answer> or <answer> y </answer>.';
    const options = { max_actions_per_traj: 1, max_actions_per_turn: 1, action_sep: '||' };
    const environment = { instruction, legend: {}, config: {} };
    expect(systemMessage(environment, options)).toContain(instruction);
    expect(systemMessage(environment, { ...options, answer_tag: 'ans' })).not.toContain('</answer>');
    expect(systemMessage(environment, { ...options, answer_tag: 'ans', env_instruction: '<answer>z</answer>!' })).toBe(
      "You're a helpful assistant. <ans>z</ans>!",
    );
  });
});

describe('user messages', () => {
  const prompt = { turn: 2, state: '_P_G', actions_left: 8, warn: false, max_tokens: 120 };

  it('show turn, state, remaining actions, format and length', () => {
    expect(turnText(prompt, think)).toBe(
      '\nTurn 2:\nState:\n_P_G\nYou have 8 actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> with no extra text. Strictly follow this format. Max response length: 120 words (tokens).\n',
    );
    expect(turnText(prompt, plain)).toContain('Always output: <answer> [your answer] </answer> with');
  });

  it('warn after an answer without a valid action', () => {
    expect(turnText({ ...prompt, warn: true }, think)).toContain(
      '_P_G\nThe last answer held no valid action, so the state has not changed. Please try again.\nYou have 8',
    );
  });

  it('print rewards as Python does', () => {
    expect(rewardText(-0.1 + 10.9, 2)).toBe('Reward:\n10.8\n');
    expect(rewardText(1, 1)).toBe('Reward:\n1.0\n');
    expect(rewardText(0, 0)).toBe('Reward:\n0\n');
  });
});

describe('Python floats', () => {
  it.each([
    [1, '1.0'],
    [0, '0.0'],
    [-0, '-0.0'],
    [-0.1, '-0.1'],
    [10.9, '10.9'],
    [-0.1 * 3, '-0.30000000000000004'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1.5e-7, '1.5e-07'],
    [123456789, '123456789.0'],
    [1e15, '1000000000000000.0'],
    [1e16, '1e+16'],
    [1.2345e22, '1.2345e+22'],
    [1e100, '1e+100'],
    [NaN, 'nan'],
    [Infinity, 'inf'],
    [-Infinity, '-inf'],
  ])('%d is %s', (value, text) => expect(pythonFloat(value)).toBe(text));
});

describe('system message', () => {
  const options = { max_actions_per_traj: 10, max_actions_per_turn: 2, action_sep: '||' };
  const bare = { instruction: '', legend: {}, config: {} };

  it('contains instruction, legend and actions', () => {
    expect(systemMessage(corridor, options)).toBe(
      [
        "You're a helpful assistant. Walk to the goal at the right end.",
        'Symbols in the state:',
        'P: player, G: goal, _: floor',
        'Available actions:',
        'Up, Down, Left, Right',
        'You can take up to 10 actions in all, at most 2 per answer, separated by " || ".',
      ].join('\n'),
    );
  });

  it('is only its first sentence for an environment without an instruction', () => {
    expect(systemMessage(bare, options)).toBe("You're a helpful assistant. ");
  });

  it('uses the tag’s instruction, even if empty', () => {
    expect(systemMessage({ ...bare, instruction: 'own' }, { ...options, env_instruction: 'tag' })).toContain('tag');
    expect(systemMessage({ ...bare, instruction: 'own' }, { ...options, env_instruction: '' })).not.toContain('own');
    expect(systemMessage({ ...bare, instruction: 'own' }, { ...options, env_instruction: null })).toContain('own');
  });

  it('explains coordinates if the environment’s observations are configured to contain them', () => {
    expect(systemMessage({ ...bare, config: { observation_format: 'coord' } }, options)).toContain('counted from zero');
  });
});

it('an answer that is a single action keeps its separators', () => {
  const raw = '<think>a</think><answer>x = a || b || c</answer>';
  expect(parseResponse(raw, think, true).actions).toEqual(['x = a || b || c']);
  expect(parseResponse(raw, think).actions).toEqual(['x = a', 'b']);
});
