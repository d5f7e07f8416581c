// Usual names of the fields of JSON lines, by their meanings.
import type { FieldMeaning } from '../run-data/mapping-proposal';

/** Usual names of each field; a dot leads into an object. */
export const fieldNames: Readonly<Record<FieldMeaning, readonly string[]>> = {
  step: ['step', '_step', 'global_step', 'training_step', 'iteration', 'train/global_step'],
  time: ['time', 'timestamp', '_timestamp', 'recorded_at'],
  messages: ['messages', 'conversation', 'chat'],
  prompt: ['prompt', 'input', 'input_prompt', 'question'],
  completion: ['completion', 'output', 'response', 'output_response'],
  reward: ['reward', 'score', 'total_reward', 'metadata.total_reward'],
  success: ['success', 'is_correct', 'correct', 'acc'],
  group: ['group_id', 'uid', 'example_id', 'group', 'prompt_id', 'metadata.group_id'],
  tag: ['env', 'env_name', 'environment', 'data_source', 'task'],
  advantage: ['advantage'],
};
