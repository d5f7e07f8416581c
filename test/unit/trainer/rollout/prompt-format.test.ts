// VAGEN's prompt formats: what the prompt asks for, how answers are read, and the reward of the format.
import { describe, expect, it } from 'vitest';
import { rewardPlan } from '../../../../extension/trainer/rewards/reward-plan';
import { formatProblem } from '../../../../extension/trainer/rewards/format-problem';
import {
  describedParts,
  formatDemand,
  formatTemplate,
  parseFormatted,
  promptFormats,
  stateForm,
} from '../../../../extension/trainer/rollout/prompt-format';
import {
  demandText,
  generationPrefix,
  parseResponse,
  tagProtocol,
} from '../../../../extension/trainer/rollout/turn-protocol';

const protocol = { enable_think: true, action_sep: ',', max_actions_per_turn: 3 };

describe('formats', () => {
  it('have VAGEN’s names, parts and forms', () => {
    expect(promptFormats.map(format => [format, describedParts(format).join('+'), stateForm(format)])).toEqual([
      ['no_think', '', 'natural_language'],
      ['free_think', '', 'natural_language'],
      ['grounding', 'observation', 'natural_language'],
      ['worldmodeling', 'prediction', 'natural_language'],
      ['grounding_worldmodeling', 'observation+prediction', 'natural_language'],
      ['grounding_structured', 'observation', 'structured'],
      ['worldmodeling_structured', 'prediction', 'structured'],
      ['grounding_worldmodeling_structured', 'observation+prediction', 'structured'],
      ['grounding_symbolic', 'observation', 'symbolic'],
      ['worldmodeling_symbolic', 'prediction', 'symbolic'],
      ['grounding_worldmodeling_symbolic', 'observation+prediction', 'symbolic'],
    ]);
  });

  it('are shown with one placeholder for each text', () => {
    expect(formatTemplate('grounding_worldmodeling')).toBe(
      '<think> <observation> [the state that you see] </observation> <reasoning> [your thoughts] </reasoning> ' +
        '<prediction> [the state after your actions] </prediction> </think> <answer> [your answer] </answer>',
    );
    expect(formatTemplate('worldmodeling', 'ans')).toBe(
      '<think> <reasoning> [your thoughts] </reasoning> <prediction> [the state after your actions] </prediction> </think> <ans> [your answer] </ans>',
    );
    expect(formatTemplate('no_think')).toBe('<answer> [your answer] </answer>');
  });

  it('are asked for as without a format if they have no descriptions', () => {
    const prompt = { turn: 1, state: 's', actions_left: 5, warn: false, max_tokens: 50 };
    for (const format of ['free_think', 'no_think'] as const) {
      const plain = { ...protocol, enable_think: format === 'free_think' };
      expect(demandText(prompt, tagProtocol(protocol, { prompt_format: format }))).toBe(demandText(prompt, plain));
      expect(formatDemand(format)).toBeUndefined();
    }
    expect(tagProtocol(protocol, { prompt_format: null })).toBe(protocol);
  });

  it('say in the system message what a description contains', () => {
    expect(formatDemand('grounding_worldmodeling_structured', { structured: '{"player": [row, column]}' })).toBe(
      'In <observation>, describe the state that you see. In <reasoning>, think about what to do. ' +
        'In <prediction>, describe the state that your actions lead to. Form of both descriptions: {"player": [row, column]}.',
    );
    expect(formatDemand('worldmodeling_symbolic')).toMatch(/^In <reasoning>.*Form of the description: the grid/);
  });

  it('begin answers with <think>, except no_think', () => {
    const prefix = (prompt_format: (typeof promptFormats)[number]) =>
      generationPrefix(tagProtocol({ ...protocol, enable_think: prompt_format === 'no_think' }, { prompt_format }));
    expect(promptFormats.map(prefix)).toEqual(['<answer>', ...promptFormats.slice(1).map(() => '<think>')]);
  });
});

describe('an answer', () => {
  const whole =
    '<think><observation> box right </observation>\n<reasoning>push</reasoning> <prediction>box on target</prediction> </think>\n<answer>Right, Up,Down ,Left</answer><|im_end|>';

  it('is read into its parts, and its actions are limited', () => {
    const prompt_format = 'grounding_worldmodeling' as const;
    expect(parseResponse(whole, { ...protocol, prompt_format })).toEqual({
      thought:
        '<observation> box right </observation>\n<reasoning>push</reasoning> <prediction>box on target</prediction>',
      observation: 'box right',
      prediction: 'box on target',
      answer: 'Right , Up , Down',
      actions: ['Right', 'Up', 'Down'],
      format_right: true,
      llm_response:
        '<think><observation> box right </observation>\n<reasoning>push</reasoning> <prediction>box on target</prediction></think><answer>Right , Up , Down</answer>',
    });
  });

  it.each([
    ['grounding', whole], // a prediction that was not asked for
    ['grounding_worldmodeling', whole.replace('<reasoning>push</reasoning>', '')],
    ['grounding_worldmodeling', whole.replace('</observation>', '</observation> so')],
    ['grounding_worldmodeling', `Sure! ${whole}`],
    ['grounding_worldmodeling', `${whole} done`],
    ['grounding_worldmodeling', whole.replace('push', 'push <answer>')],
    ['grounding_worldmodeling', whole.slice(0, -30)],
    ['free_think', '<think>a</think> so <answer>Up</answer>'],
    ['free_think', '<think>a <think>b</think><answer>Up</answer>'],
    ['no_think', '<think>a</think><answer>Up</answer>'],
  ] as const)('that departs from %s has no parts and no actions: %s', (prompt_format, raw) => {
    expect(parseFormatted(raw, prompt_format)).toBeNull();
    expect(parseResponse(raw, { ...protocol, prompt_format })).toMatchObject({
      ...{ thought: null, answer: null, actions: [], format_right: false, llm_response: raw },
    });
  });

  it('with other tags inside a free thought follows the format', () => {
    expect(parseFormatted('<think><plan>a</plan></think> <answer>Up</answer>\n', 'free_think')).toEqual({
      ...{ thought: '<plan>a</plan>', answer: 'Up' },
    });
  });
});

describe('the component format', () => {
  const environment = { tag: 'T', source: 'lake.ts' };
  it('is 1 if the answer follows the format and its actions are valid, otherwise 0', () => {
    const plan = rewardPlan(environment, { weights: {}, judges: {}, format: { weight: 0.5 } })!;
    expect(plan.weights.get('format')).toBe(0.5);
    expect([true, false].map(format_right => plan.builtIn({ state: '', thought: '', format_right }))).toEqual([
      ...[{ format: 1 }, { format: 0 }],
    ]);
  });

  it('is refused with an environment whose answers have their own form', () => {
    const tools = [{ name: 'read', description: '', parameters: {} }];
    expect(formatProblem({ tag: 'T', name: 'files', tools }, { prompt_format: 'grounding' })).toBe(
      'config: custom_envs.T.prompt_format is grounding, but environment files has tools, whose calls have their own form: set it to null',
    );
    expect(formatProblem({ tag: 'T', name: 'program', model_calls: true }, { prompt_format: 'free_think' })).toMatch(
      /runs a program/,
    );
    expect(formatProblem({ tag: 'T', name: 'lake' }, { prompt_format: 'grounding' })).toBeUndefined();
    expect(formatProblem({ tag: 'T', name: 'files', tools }, { prompt_format: null })).toBeUndefined();
  });
});
