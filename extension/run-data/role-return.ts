// What one role of an episode has earned, in a line of `episodes/*.jsonl`.
import { z } from 'zod';

export const roleReturnSchema = z.object({
  turns: z.number().int().describe('number of turns that the role played'),
  reward: z
    .number()
    .describe('sum of the rewards of its turns; without a turn, the rewards that other roles’ turns gave it'),
  penalty: z.number().describe('sum of the format penalties of its turns'),
  score: z
    .number()
    .describe('reward + penalty + reward components of its turns and of the episode, before normalisation'),
  success: z.boolean(),
  player: z
    .string()
    .optional()
    .describe('model in model_info that played the role behind an API; absent if the policy played it'),
});
export type RoleReturn = z.infer<typeof roleReturnSchema>;
