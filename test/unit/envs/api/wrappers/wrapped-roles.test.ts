// Wrappers around an environment with roles: a refused action keeps the turn, and a role sees only its own states.
import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineEnvironment } from '../../../../../envs/api/environment';
import { withActionMask } from '../../../../../envs/api/wrappers/action-mask';
import { withFrameHistory } from '../../../../../envs/api/wrappers/frame-history';

const names = { odd: { 1: 'One' }, even: { 2: 'Two', 3: 'Three' } };

/** Two roles count in turns; each has names of its own for its actions. */
const race = defineEnvironment({
  name: 'race',
  config: z.object({}),
  instruction: 'Count.',
  actions: names.odd,
  roles: { odd: {}, even: {} },
  create() {
    let said = 0;
    const turn = () => {
      const role = said % 2 === 0 ? ('odd' as const) : ('even' as const);
      return { observation: `${role} sees ${said}`, role, actions: names[role] };
    };
    return {
      reset: () => ((said = 0), turn()),
      step: () => (said++, { ...turn(), reward: 0, terminated: false, truncated: false, info: {} }),
    };
  },
});

test('a forbidden action leaves the turn to its role, with the actions of this turn', async () => {
  const masked = withActionMask(race, action => action !== 3, { tell: true }).create({});
  await masked.reset({ seed: 1 });
  const step = await masked.step(1);
  expect(step.observation).toBe('even sees 1\nOpen actions: Two.');
  expect(await masked.step(3)).toMatchObject({
    ...{ role: 'even', actions: names.even, observation: step.observation },
    info: { action_is_valid: false, action_mask: [true, false] },
  });
});

test('frames are those of the role that sees the observation, with its own actions', async () => {
  const framed = withFrameHistory(race, { frames: 2 }).create({});
  const seen = [(await framed.reset({ seed: 1 })).observation];
  for (const action of [1, 2, 1]) seen.push((await framed.step(action)).observation);
  expect(seen).toEqual([
    'State 0:\nodd sees 0',
    'State 1:\neven sees 1',
    'State 0:\nodd sees 0\nAction 2: One\nState 2:\nodd sees 2',
    'State 1:\neven sees 1\nAction 3: Two\nState 3:\neven sees 3',
  ]);
});
