// The demonstrator's response in a turn: a thought and an answer, computed from the state as the model sees it. In
// style `looking`, the thought states the position of the goal and the next cells, and the answer contains the solver's
// moves. In style `guessing`, the answer contains random moves. A model trained on a mixture of both styles can improve
// through reinforcement learning.
import type { RandomStream } from '../../engine/sampling/random-stream';

export type DemonstrationStyle = 'looking' | 'guessing';

export interface Demonstration {
  thought: string;
  actions: string[];
}

type Cell = readonly [row: number, column: number];

const moves: Readonly<Record<string, Cell>> = { Left: [0, -1], Down: [1, 0], Right: [0, 1], Up: [-1, 0] };
const moveNames = Object.keys(moves);

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
  const player = cells(state, 'Player')[0] ?? cells(state, 'Player on target')[0];
  if (!player || actions.length === 0) return null;
  const goal = cells(state, 'Goal')[0];
  if (goal) {
    const holes = cells(state, 'Holes');
    return {
      thought: `Me ${show(player)}, goal ${show(goal)}: ${offset(player, goal)}. ${walk(player, goal, actions, holes)}`,
      actions,
    };
  }
  const target = cells(state, 'Targets')[0];
  const box = cells(state, 'Boxes')[0];
  if (!target || !box) return null;
  const thought = `Me ${show(player)}, box ${show(box)}: ${offset(player, box)}. Target ${show(target)}: ${offset(box, target)}. ${actions.join(', then ')}.`;
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

/** Returns the cells after `label:` in a state that lists coordinates. */
function cells(state: string, label: string): Cell[] {
  const line = new RegExp(`^${label}: (.*)$`, 'm').exec(state)?.[1] ?? '';
  return [...line.matchAll(/\((\d+), (\d+)\)/g)].map(([, row, column]) => [Number(row), Number(column)]);
}

const show = ([row, column]: Cell): string => `(${row}, ${column})`;

/** Describes the offset between two cells, such as `2 down, 1 left`, `1 up` or `here`. */
function offset(from: Cell, to: Cell): string {
  const down = to[0] - from[0];
  const right = to[1] - from[1];
  const parts: string[] = [];
  if (down !== 0) parts.push(`${Math.abs(down)} ${down > 0 ? 'down' : 'up'}`);
  if (right !== 0) parts.push(`${Math.abs(right)} ${right > 0 ? 'right' : 'left'}`);
  return parts.join(', ') || 'here';
}

/** Describes each move and the cell it leads to, such as `Down (2, 2) free, Left (2, 1) goal.`. */
function walk(from: Cell, goal: Cell, actions: readonly string[], holes: readonly Cell[]): string {
  let [row, column] = from;
  const steps = actions.map(action => {
    row += moves[action][0];
    column += moves[action][1];
    const at = (cell: Cell): boolean => cell[0] === row && cell[1] === column;
    return `${action} (${row}, ${column}) ${at(goal) ? 'goal' : holes.some(at) ? 'hole' : 'free'}`;
  });
  return `${steps.join(', ')}.`;
}
