// Texts of the user messages in mode `single_turn`, for both built-in memories, and the check of files for them.
import { describe, expect, it } from 'vitest';
import type { CurrentTurn } from '../../../../extension/trainer/rollout/context-window';
import type { MemoryPlugin, MemoryRequest } from '../../../../envs/api/plugins/memory';
import { pluginTrials } from '../../../../extension/trainer/plugins/plugin-trials';
import { memoryRequest, userMessage } from '../../../../extension/trainer/rollout/memory-message';
import { builtInMemories } from '../../../../extension/trainer/rollout/memories';
import type { TurnProtocol } from '../../../../extension/trainer/rollout/turn-protocol';
import { asked, past } from './scripted-rollout';

const protocol = { enable_think: true, action_sep: '||', max_actions_per_turn: 2 };
const demand =
  'You have 5 actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> with no extra text. ' +
  'Strictly follow this format. Max response length: 50 words (tokens).\n';

const messageOf =
  ({ remember }: MemoryPlugin) =>
  (turn: Pick<CurrentTurn, 'prompts' | 'history'>, first: number, protocol: TurnProtocol): string =>
    userMessage(remember(memoryRequest(turn, first, 'own', protocol)), turn.prompts[turn.prompts.length - 1], protocol);
const simpleMemory = messageOf(builtInMemories.simple);
const alfWorldMemory = messageOf(builtInMemories.alfworld);

it.each(Object.entries(builtInMemories))('%s passes the check of files', async (name, { remember, ...definition }) => {
  const { kind, ...properties } = definition;
  expect(definition).toEqual({ kind: 'memory', name, firstTurn: true });
  const plugin = {
    path: name,
    description: { kind, name, functions: ['remember'], properties },
    call: (_: string, request: unknown) => Promise.resolve(structuredClone(remember(request as MemoryRequest))),
  };
  for (const { run } of pluginTrials.memory) {
    const messages = (await run(plugin)) as { message: string }[];
    expect(messages).toHaveLength(4);
    for (const { message } of messages) expect(message).toContain('The room is dark.');
  }
});

describe('the simple memory', () => {
  const prompts = [asked(1), asked(2), asked(3)];
  const history = [past(1, '<think>a</think> <answer>Up</answer> bye', -0.1), past(2, 'no tags', 0)];

  it('shows only the current turn in the first turn', () => {
    expect(simpleMemory({ prompts: [asked(1)], history: [] }, 0, protocol)).toBe(`(Turn 1):\nState:\ns1\n${demand}`);
    expect(simpleMemory({ prompts, history }, 2, protocol)).toBe(`(Turn 3):\nState:\ns3\n${demand}`);
  });

  it('shows states, canonical answers and rewards of the turns before', () => {
    expect(simpleMemory({ prompts, history }, 0, protocol)).toBe(
      'Summary: 2 step(s) completed so far, showing the last 2 turn(s) below.\n\nRecent turns:\n' +
        '---\nTurn 1 State:\ns1\nTurn 1 Action:\n<think>a</think><answer>Up</answer>\nTurn 1 Reward:\n-0.1\n' +
        '---\nTurn 2 State:\ns2\nTurn 2 Action:\nno tags\nTurn 2 Reward:\n0\n' +
        `---\n\nCurrent Turn (Turn 3):\nState:\ns3\n${demand}`,
    );
  });

  it('uses the configured answer tag in states and answers', () => {
    const shown = [past(1, '<think>a</think><answer>Up</answer>', 0)].map(turn => ({
      ...turn,
      state: '<answer> or </answer>',
    }));
    const text = simpleMemory({ prompts: [{ ...asked(1), state: shown[0].state }, asked(2)], history: shown }, 0, {
      ...protocol,
      answer_tag: 'ans',
    });
    expect(text).toContain('Turn 1 State:\n<ans> or </ans>\nTurn 1 Action:\n<think>a</think><ans>Up</ans>\n');
    expect(text).not.toContain('answer>');
  });

  it('numbers the turns as in the episode if the window begins later', () => {
    const text = simpleMemory({ prompts, history }, 1, protocol);
    expect(text).toContain('2 step(s) completed so far, showing the last 1 turn(s)');
    expect(text.match(/Turn \d State/g)).toEqual(['Turn 2 State']);
  });
});

describe('ALFWorld’s memory', () => {
  const banner = '-= Welcome to TextWorld, ALFRED! =-\n\n';
  const room = 'You are in the middle of a room. Looking quickly around you, you see a cabinet 1.';
  const state = (text: string) => `${text}\n\nAdmissible actions: [go to cabinet 1, look]`;
  const start = state(`${banner}${room}\n\nYour task is to: put a clean mug in cabinet.`);
  const long = state(`On the ${'very '.repeat(60)}long table you see nothing.`);
  const turn = (number: number, text: string, answer: string): CurrentTurn['history'][number] => ({
    ...past(number, `<think>t</think><answer>${answer}</answer>`),
    state: text,
  });

  it('starts with the task and the admissible actions', () => {
    expect(alfWorldMemory({ prompts: [asked(1, start)], history: [] }, 0, protocol)).toBe(
      `Your task is to: put a clean mug in cabinet.\nYou are at step 1. Your current observation is: ${room}\n` +
        `Your admissible actions now are: [go to cabinet 1, look].\n${demand}`,
    );
  });

  it('shows short observations with the actions taken, and the task even when its turn is outside the window', () => {
    const prompts = [asked(1, start), asked(2, long), { ...asked(3, state('Nothing happens.')), warn: true }];
    const history = [turn(1, start, 'look'), turn(2, long, 'fly')];
    const shown = `On the ${'very '.repeat(60)}long`.slice(0, 197);
    expect(alfWorldMemory({ prompts, history }, 0, protocol)).toBe(
      'Your task is to: put a clean mug in cabinet.\n' +
        'You have taken 2 step(s) so far. The most recent 2 observations and actions:\n' +
        `[Observation 1: '${room}', Action 1: 'look'] [Observation 2: '${shown}...', Action 2: 'fly']\n` +
        'You are at step 3. Your current observation is: Nothing happens.\n' +
        'Your admissible actions now are: [go to cabinet 1, look].\nYour last answer held no valid action.\n' +
        demand,
    );
    expect(alfWorldMemory({ prompts, history }, 2, protocol)).not.toContain('Observation');
    expect(alfWorldMemory({ prompts, history }, 2, protocol)).toContain('put a clean mug');
  });

  it('truncates only observations of more than 200 characters', () => {
    const of = (length: number) => {
      const prompts = [asked(1, 'x'.repeat(length)), asked(2)];
      return /Observation 1: '(?<text>[^']*)'/.exec(
        alfWorldMemory({ prompts, history: [turn(1, 'x'.repeat(length), 'a')] }, 0, protocol),
      )?.groups?.text;
    };
    expect(of(200)).toBe('x'.repeat(200));
    expect(of(201)).toBe(`${'x'.repeat(197)}...`);
  });
});
