// Demonstrated responses for FrozenLake and Sokoban. The facts are the positions of the player, the goal or the box and
// its target, and their offset. A looking thought then names each move with the cell it leads to: on a lake, also the
// moves towards the goal that would end in a hole; in Sokoban, whether a move pushes the box.
import type { Demonstration } from '../demonstrated-response';
import { cellsAfter, cellText, isSameCell, movedCell, moveNames, offsetText } from '../board-cells';
import type { Cell } from '../board-cells';
import { guess, pickSome } from './response';
import type { ResponseRequest } from './response';

/** Responds to a lake that lists coordinates. */
export function lakeResponse(request: ResponseRequest): Demonstration | null {
  const { state, plan, mostActions } = request;
  const [player] = cellsAfter(state, 'Player');
  const [goal] = cellsAfter(state, 'Goal');
  if (!player || !goal) return null;
  const facts = `me ${cellText(player)}, goal ${cellText(goal)}, ${offsetText(player, goal)}.`;
  const actions = plan.slice(0, mostActions);
  if (!request.looks || actions.length === 0) return guessed(facts, request);
  const holes = cellsAfter(state, 'Holes');
  let cell = player;
  const steps = actions.map(action => {
    const from = cell;
    const traps = moveNames.filter(name => name !== action && isTrap(from, name, goal, holes));
    cell = movedCell(from, action);
    return [
      ...traps.map(name => ` ${name} ${cellText(movedCell(from, name))} hole.`),
      ` ${action} ${cellText(cell)}.`,
    ].join('');
  });
  return { thought: facts + steps.join(''), actions };
}

/** Responds to a Sokoban room with one box that lists coordinates. */
export function roomResponse(request: ResponseRequest): Demonstration | null {
  const { state, plan, mostActions } = request;
  const player = cellsAfter(state, 'Player')[0] ?? cellsAfter(state, 'Player on target')[0];
  const [start] = cellsAfter(state, 'Boxes');
  const [target] = cellsAfter(state, 'Targets');
  if (!player || !start || !target) return null;
  const facts = `me ${cellText(player)}, box ${cellText(start)}, target ${cellText(target)}, ${offsetText(start, target)}.`;
  const actions = plan.slice(0, mostActions);
  if (!request.looks || actions.length === 0) return guessed(facts, request);
  let cell = player;
  let box = start;
  const steps = actions.map(action => {
    cell = movedCell(cell, action);
    const pushes = isSameCell(cell, box);
    if (pushes) box = movedCell(box, action);
    return ` ${action} ${cellText(cell)}${pushes ? ' push' : ''}.`;
  });
  return { thought: facts + steps.join(''), actions };
}

/** Whether a move leads towards the goal and into a hole. */
function isTrap(from: Cell, move: string, goal: Cell, holes: readonly Cell[]): boolean {
  const to = movedCell(from, move);
  const distance = (cell: Cell): number => Math.abs(cell[0] - goal[0]) + Math.abs(cell[1] - goal[1]);
  return distance(to) < distance(from) && holes.some(hole => isSameCell(hole, to));
}

const guessed = (facts: string, { mostActions, stream }: ResponseRequest): Demonstration => ({
  thought: `${facts} ${guess}`,
  actions: pickSome(moveNames, mostActions, stream),
});
