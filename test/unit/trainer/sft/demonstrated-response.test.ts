// Demonstrations: a thought must follow from its state, cell by cell, and the actions must be those of the plan.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';
import { demonstrate } from '../../../../extension/trainer/sft/demonstrated-response';

const lake = (player: string, goal: string, holes = '(1, 0), (2, 3)'): string =>
  `State:\nCoordinates: \nBoard size: 4 rows x 4 cols (zero-indexed).\nStart: (0, 0)\nGoal: ${goal}\nPlayer: ${player}\nHoles: ${holes}\nGrid Map: \n`;

describe('frozen lake', () => {
  it('states both positions, their distance, and the result of each move', () => {
    const shown = demonstrate(lake('(1, 2)', '(3, 1)'), ['Down', 'Left', 'Down'], 'looking', 2, new RandomStream(1));
    expect(shown).toEqual({
      thought: 'Me (1, 2), goal (3, 1): 2 down, 1 left. Down (2, 2) free, Left (2, 1) free.',
      actions: ['Down', 'Left'],
    });
  });

  it('names holes and the goal', () => {
    const hole = demonstrate(lake('(2, 2)', '(3, 3)'), ['Right'], 'looking', 2, new RandomStream(1));
    expect(hole?.thought).toMatch(/Right \(2, 3\) hole\.$/);
    const goal = demonstrate(lake('(3, 2)', '(3, 3)'), ['Right'], 'looking', 2, new RandomStream(1));
    expect(goal?.thought).toBe('Me (3, 2), goal (3, 3): 1 right. Right (3, 3) goal.');
  });

  it('guesses without reading the state: the same stream gives the same text for any state', () => {
    fc.assert(
      fc.property(fc.nat(), seed => {
        const one = demonstrate(lake('(0, 0)', '(3, 3)'), ['Down'], 'guessing', 2, new RandomStream(seed));
        const other = demonstrate(lake('(3, 0)', '(0, 1)'), ['Up'], 'guessing', 2, new RandomStream(seed));
        expect(one).toEqual(other);
        expect(one?.actions.length).toBeGreaterThanOrEqual(1);
        expect(one?.actions.length).toBeLessThanOrEqual(2);
        expect(one?.thought).toBe(`I guess ${one?.actions.join(', then ')}.`);
      }),
    );
  });
});

it('relates player, box and target in sokoban', () => {
  const state = 'State:\nBoard size: 6 rows x 6 cols (zero-indexed).\nTargets: (1, 4)\nBoxes: (1, 2)\nPlayer: (1, 1)\n';
  expect(demonstrate(state, ['Right', 'Right'], 'looking', 2, new RandomStream(1))?.thought).toBe(
    'Me (1, 1), box (1, 2): 1 right. Target (1, 4): 2 right. Right, then Right.',
  );
});

it('names both arms of the bandit, and chooses the better arm if the thought reads the state', () => {
  const state = 'They are called Pilot and Postman.';
  expect(demonstrate(state, ['Pilot'], 'looking', 2, new RandomStream(1))).toEqual({
    thought: 'Postman is steady, Pilot may pay more.',
    actions: ['Pilot'],
  });
});

it('does not read the state without a plan, or if the state is of an unknown kind', () => {
  expect(demonstrate(lake('(0, 0)', '(3, 3)'), [], 'looking', 2, new RandomStream(1))).toBeNull();
  expect(demonstrate('State:\nan empty room\n', ['Up'], 'looking', 2, new RandomStream(1))).toBeNull();
});
