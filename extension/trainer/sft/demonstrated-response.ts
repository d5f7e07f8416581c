// The demonstrator's response in a turn: a thought and an answer, computed from the state as the model sees it. In
// style `looking`, the thought states the position of the goal and the next cells, and the answer contains the solver's
// moves. In style `guessing`, the answer contains random moves. A model trained on a mixture of both styles can improve
// through reinforcement learning.
import type { RandomStream } from '../../engine/sampling/random-stream';
import { cellsAfter, cellText, isSameCell, movedCell, moveNames, offsetText } from './board-cells';
import type { Cell } from './board-cells';

export type DemonstrationStyle = 'looking' | 'guessing';

export interface Demonstration {
  thought: string;
  actions: string[];
}

/**
 * Returns a thought and actions for a state.
 * @param state the observation as the model sees it
 * @param plan names of the solver's next actions, in order
 * @returns null if the state has an unknown format
 */
export function demonstrate(
  state: string,
  plan: readonly string[],
  manner: DemonstrationStyle,
  actionsPerTurn: number,
  stream: RandomStream,
): Demonstration | null {
  const arms = /They are called (\S+) and (\S+)\./.exec(state);
  if (arms) return pullArm([arms[1], arms[2]], plan[0], manner, stream);
  if (manner === 'guessing') {
    const actions = Array.from({ length: 1 + stream.integer(actionsPerTurn) }, () => moveNames[stream.integer(4)]);
    return { thought: `I guess ${actions.join(', then ')}.`, actions };
  }
  const actions = plan.slice(0, actionsPerTurn);
  const player = cellsAfter(state, 'Player')[0] ?? cellsAfter(state, 'Player on target')[0];
  if (!player || actions.length === 0) return null;
  const goal = cellsAfter(state, 'Goal')[0];
  if (goal) {
    const holes = cellsAfter(state, 'Holes');
    return {
      thought: `Me ${cellText(player)}, goal ${cellText(goal)}: ${offsetText(player, goal)}. ${walk(player, goal, actions, holes)}`,
      actions,
    };
  }
  const target = cellsAfter(state, 'Targets')[0];
  const box = cellsAfter(state, 'Boxes')[0];
  if (!target || !box) return null;
  const thought = `Me ${cellText(player)}, box ${cellText(box)}: ${offsetText(player, box)}. Target ${cellText(target)}: ${offsetText(box, target)}. ${actions.join(', then ')}.`;
  return { thought, actions };
}

function pullArm(
  arms: [string, string],
  high: string,
  manner: DemonstrationStyle,
  stream: RandomStream,
): Demonstration {
  if (manner === 'guessing') {
    const arm = arms[stream.integer(2)];
    return { thought: `I guess ${arm}.`, actions: [arm] };
  }
  const low = arms[0] === high ? arms[1] : arms[0];
  return { thought: `${low} is steady, ${high} may pay more.`, actions: [high] };
}

/** Describes each move and the cell it leads to, such as `Down (2, 2) free, Left (2, 1) goal.`. */
function walk(from: Cell, goal: Cell, actions: readonly string[], holes: readonly Cell[]): string {
  let cell = from;
  const steps = actions.map(action => {
    cell = movedCell(cell, action);
    const isHole = holes.some(hole => isSameCell(hole, cell));
    return `${action} ${cellText(cell)} ${isSameCell(cell, goal) ? 'goal' : isHole ? 'hole' : 'free'}`;
  });
  return `${steps.join(', ')}.`;
}
