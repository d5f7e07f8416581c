// Demonstrated responses for the two-armed bandit. The facts say which arm is steady and which is risky; this is what a
// model has to know about the names. A looking response takes the risky arm, which pays more; a guess takes an arm at
// random.
import type { Demonstration } from '../demonstrated-response';
import { guess, pick } from './response';
import type { ResponseRequest } from './response';

export function banditResponse({ state, plan, looks, stream }: ResponseRequest): Demonstration | null {
  const arms = /They are called (\S+) and (\S+)\./.exec(state)?.slice(1);
  const risky = arms?.find(arm => arm === plan[0]);
  const steady = arms?.find(arm => arm !== plan[0]);
  if (!arms || risky === undefined || steady === undefined) return null;
  const facts = `${steady} steady, ${risky} risky.`;
  if (looks) return { thought: `${facts} risky pays.`, actions: [risky] };
  // The name of the chosen arm is part of the thought, so that the thought and not only the answer decides.
  const isSafe = stream.uniform() < safeShare;
  const arm = isSafe ? steady : pick([steady, risky], stream);
  return { thought: `${facts} ${isSafe ? 'steady is safe.' : guess}`, actions: [arm] };
}

/** Share of guesses that prefer the steady arm. */
const safeShare = 0.5;
