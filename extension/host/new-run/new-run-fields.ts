// The configuration keys shown on the New Run page, in order. Type, choices and help come from the configuration
// schema, so the page agrees with the editor's help and the docs. Must not import `vscode`.
import { schemaAt, type JsonSchema } from '../../protocol/json-schema';
import type { Field, FieldGroup } from '../../protocol/new-run-page';
import { namedValues } from '../configuration/configuration-schema';

const actor = 'actor_rollout_ref.actor';
const rollout = 'actor_rollout_ref.rollout';

/** Keys and titles by group. */
const groups: [title: string, keys: [key: string, title: string][]][] = [
  [
    'Run',
    [
      ['trainer.experiment_name', 'Name'],
      ['trainer.total_training_steps', 'Steps'],
      ['trainer.test_freq', 'Steps between validations'],
      ['trainer.save_freq', 'Steps between checkpoints'],
      ['workbench.keep_checkpoints', 'Checkpoints kept'],
      ['seed.train', 'Seed'],
    ],
  ],
  [
    'Model',
    [
      ['model_path', 'Model'],
      ['lora.rank', 'Rank of adapters'],
      ['workbench.device', 'Device'],
      ['micro_batch_size_per_gpu', 'Episodes a pass'],
    ],
  ],
  [
    'Episodes',
    [
      ['es_manager.train.group_size', 'Episodes a group'],
      ['agent_proxy.max_turn', 'Turns'],
      ['agent_proxy.max_actions_per_turn', 'Actions a turn'],
      [`${rollout}.response_length`, 'Tokens a turn'],
      [`${rollout}.max_model_len`, 'Tokens an episode'],
      [`${rollout}.temperature`, 'Temperature'],
      ['agent_proxy.enable_think', 'Reasoning'],
      ['agent_proxy.context_window_mode', 'Context window'],
    ],
  ],
  [
    'Algorithm',
    [
      ['algorithm.adv_estimator', 'Advantages'],
      [`${actor}.policy_loss.loss_mode`, 'Loss'],
      [`${actor}.optim.lr`, 'Learning rate'],
      ['ppo_mini_batch_size', 'Episodes an update'],
      [`${actor}.ppo_epochs`, 'Passes over a batch'],
      [`${actor}.clip_ratio_low`, 'Clip below'],
      [`${actor}.clip_ratio_high`, 'Clip above'],
      [`${actor}.entropy_coeff`, 'Entropy coefficient'],
      [`${actor}.use_kl_loss`, 'KL loss'],
      [`${actor}.kl_loss_coef`, 'KL coefficient'],
    ],
  ],
  [
    'Rollout filter',
    [
      [`${rollout}.rollout_filter_strategy`, 'Keep groups by'],
      [`${rollout}.rollout_filter_value`, 'Threshold'],
      [`${rollout}.rollout_filter_metric`, 'Score of a group'],
    ],
  ],
];

/** Returns the page's controls. Throws if a key is not in the schema. */
export const fieldGroups = (schema: JsonSchema): FieldGroup[] =>
  groups.map(([title, keys]) => ({ title, fields: keys.map(([key, name]) => fieldOf(schema, key, name)) }));

function fieldOf(root: JsonSchema, key: string, title: string): Field {
  const schema = schemaAt(root, key.split('.'));
  if (!schema) throw new Error(`new run: ${key} is no key of the configuration`);
  const choices = namedValues(schema);
  const numeric = (schema.anyOf ?? [schema]).some(({ type }) => type === 'integer' || type === 'number');
  const isFlag = choices.join() === 'true,false';
  const kind = isFlag ? 'flag' : choices.length > 0 ? 'choice' : numeric ? 'number' : 'text';
  return { key, title, help: schema.description ?? '', kind, choices: isFlag ? [] : choices };
}
