// Bi-arm bandit (RAGEN, Bandit): in each episode, the model pulls one of two arms once. The low arm pays a constant;
// the high arm pays rarely, but more on average. The arms' names suggest which arm is the high one. The group's seed
// determines the two arms and their order, so all episodes of a group have the same prompt and differ only in the
// random payouts. The two arms are the episode's named actions, so an answer that names neither arm is invalid. The
// system message does not list the actions, because the task description already names them.
import { z } from 'zod';
import { defineEnvironment, type StepResult } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { armPairs } from './arms';

const config = z.strictObject({
  split: z.enum(['train', 'test']).default('train'),
  action_space_start: z
    .int()
    .default(1)
    .describe('number of the first arm, for answers that name an arm by its number'),
  lo_arm_score: z.number().default(0.1),
  hi_arm_loscore: z.number().default(0),
  hi_arm_hiscore: z.number().default(1),
  hi_arm_hiscore_prob: z.number().min(0).max(1).default(0.25),
  render_mode: z.literal('text').default('text'),
});

const rules = (a: string, b: string) => `This is a bandit game. Your goal is to collect as much reward as you can.
Rules:
1. You can pull one of two arms. They are called ${a} and ${b}.
2. Each arm pays from a distribution of its own, which has to do with its name.
3. Reason about what each name stands for, and from that about how its arm may pay.
4. Decide which arm pays more on average, ${a} or ${b}, and answer with its name: <answer> ${a} </answer> or <answer> ${b} </answer>.
`;

/** Formats a number like a Python float, for example 1 as `1.0`. */
const pythonFloat = (value: number) => (Number.isInteger(value) ? value.toFixed(1) : String(value));

export default defineEnvironment({
  name: 'bandit',
  config,
  instruction: '',
  create(config) {
    let arms: [string, string] = ['', ''];
    let high = '';
    let payouts: Pcg64;
    let observation = '';
    let over = false;

    const refuse = (): StepResult => ({
      observation,
      reward: 0,
      terminated: over,
      truncated: false,
      info: { action_is_effective: false, action_is_valid: false, success: false },
    });

    return {
      reset({ seed, member = 0 }) {
        const random = new Pcg64(seed);
        const pairs = armPairs[config.split];
        const pair = pairs[Math.floor(random.random() * pairs.length)];
        high = pair[1];
        arms = random.random() < 0.5 ? [pair[0], pair[1]] : [pair[1], pair[0]];
        payouts = new Pcg64(seed, [member]);
        observation = rules(arms[0], arms[1]);
        over = false;
        const { action_space_start: first } = config;
        return { observation, actions: { [first]: arms[0], [first + 1]: arms[1] } };
      },

      step(action) {
        const named = typeof action === 'number' ? undefined : action.trim().toLowerCase();
        const arm = arms.find((name, i) => name.toLowerCase() === named || i + config.action_space_start === action);
        if (arm === undefined || over) return refuse();
        over = true;
        const success = arm === high;
        const lucky = success && payouts.random() < config.hi_arm_hiscore_prob;
        const reward = !success ? config.lo_arm_score : lucky ? config.hi_arm_hiscore : config.hi_arm_loscore;
        observation = `${arm}: ${pythonFloat(reward)} points`;
        const info = { action_is_effective: true, action_is_valid: true, success };
        return { observation, reward, terminated: true, truncated: false, info };
      },

      render: () => observation,
      solve: () => [high],
    };
  },
});
