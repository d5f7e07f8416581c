// Schema of the players of roles (docs/environments/multi-agent.md): which roles of a tag are played by models behind
// APIs. The key `roles` has no default value, so the configurations of runs without such players stay as they are.
import { z } from 'zod';
import { flag } from './schema-policy';
import { requestLimits } from './schema-rewards';

const player = z
  .strictObject({
    model: z.string().min(1).describe('Name in model_info of the model that plays the role.'),
    share_replies: flag(
      'Whether equal conversations of different episodes get the same reply, which saves requests. By default, a reply is used again only when a resumed run repeats the turn.',
    ).default(false),
    ...requestLimits('role'),
  })
  .describe('A model behind an API that plays a role. Its turns are not trained.');

export const rolePlayers = z
  .record(z.string().regex(/^[\w-]{1,64}$/, 'the name of a role'), player)
  .describe(
    'Roles that models behind APIs play instead of the policy, by name of the role (docs/environments/multi-agent.md).',
  );

/** Settings of a role that a model behind an API plays, `custom_envs.<tag>.roles.<role>`. */
export type RolePlayerSettings = z.infer<typeof player>;
