// Demonstrated responses for the cube. The fact is the number of faces with a single colour. A looking thought states
// how many turns are missing and lists them; it is given for cubes at most three turns away from solved. A guess turns
// random faces.
import { moveNames } from '../../../../envs/rubikscube/cube';
import type { Demonstration } from '../demonstrated-response';
import { guess, pickSome } from './response';
import type { ResponseRequest } from './response';

/** Maximum number of turns of a solution that a demonstration shows. */
const mostTurns = 3;

export function cubeResponse({ state, plan, looks, mostActions, stream }: ResponseRequest): Demonstration | null {
  const faces = [...state.matchAll(/\[(\w), (\w)\] \[(\w), (\w)\]/g)].map(([, ...colours]) => colours);
  if (faces.length === 0) return null;
  const done = faces.filter(([first, ...others]) => others.every(colour => colour === first)).length;
  const facts = `${done} faces done.`;
  if (!looks || plan.length === 0 || plan.length > Math.min(mostTurns, mostActions))
    return { thought: `${facts} ${guess}`, actions: pickSome(moveNames, mostGuesses, stream) };
  return { thought: `${facts} ${plan.length} off: ${plan.join(', ')}.`, actions: [...plan] };
}

/** Maximum number of turns of a guess. */
const mostGuesses = 2;
