// The configuration keys shown on the New Run page, in order. The type, choices and help of a key come from the
// configuration schema. Editor help and documentation use the same schema. Must not import `vscode`.
import { schemaAt, type JsonSchema } from '../../common/json-schema';
import type { Field, FieldGroup } from '../../protocol/new-run-page';
import { namedValues } from '../configuration/configuration-schema';

const actor = 'actor_rollout_ref.actor';
const rollout = 'actor_rollout_ref.rollout';

/** The groups of the form. Each group has a title and a list of keys; each key has a title too. */
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
      ['lora.rank', 'LoRA rank'],
      ['workbench.device', 'Device'],
      ['micro_batch_size_per_gpu', 'Micro-batch size'],
    ],
  ],
  [
    'Episodes',
    [
      ['es_manager.train.group_size', 'Group size (rollouts per prompt)'],
      ['agent_proxy.max_turn', 'Max turns'],
      ['agent_proxy.max_actions_per_turn', 'Max actions per turn'],
      [`${rollout}.response_length`, 'Max response tokens'],
      [`${rollout}.max_model_len`, 'Max context tokens'],
      [`${rollout}.temperature`, 'Temperature'],
      ['agent_proxy.enable_think', 'Reasoning'],
      ['agent_proxy.context_window_mode', 'Context window'],
    ],
  ],
  [
    'Algorithm',
    [
      ['algorithm.adv_estimator', 'Advantage estimator'],
      [`${actor}.policy_loss.loss_mode`, 'Loss'],
      [`${actor}.optim.lr`, 'Learning rate'],
      ['ppo_mini_batch_size', 'Mini-batch size'],
      [`${actor}.ppo_epochs`, 'PPO epochs'],
      [`${actor}.clip_ratio_low`, 'Clip ratio (low)'],
      [`${actor}.clip_ratio_high`, 'Clip ratio (high)'],
      [`${actor}.entropy_coeff`, 'Entropy coefficient'],
      [`${actor}.use_kl_loss`, 'KL loss'],
      [`${actor}.kl_loss_coef`, 'KL coefficient'],
    ],
  ],
  [
    'Rollout filter',
    [
      [`${rollout}.rollout_filter_strategy`, 'Filter strategy'],
      [`${rollout}.rollout_filter_value`, 'Threshold'],
      [`${rollout}.rollout_filter_metric`, 'Group score'],
    ],
  ],
];

/** Returns the page's controls. Throws if a key is not in the schema. */
export const fieldGroups = (schema: JsonSchema): FieldGroup[] =>
  groups.map(([title, keys]) => ({ title, fields: keys.map(([key, name]) => fieldOf(schema, key, name)) }));

function fieldOf(root: JsonSchema, key: string, title: string): Field {
  const schema = schemaAt(root, key.split('.'));
  if (!schema) throw new Error(`new run: ${key} is not a key of the configuration`);
  const choices = namedValues(schema);
  const numeric = (schema.anyOf ?? [schema]).some(({ type }) => type === 'integer' || type === 'number');
  const isFlag = choices.join() === 'true,false';
  const kind = isFlag ? 'flag' : choices.length > 0 ? 'choice' : numeric ? 'number' : 'text';
  return { key, title, help: schema.description ?? '', kind, choices: isFlag ? [] : choices };
}
