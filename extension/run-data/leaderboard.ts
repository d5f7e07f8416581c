// A leaderboard: models by environments, from evaluations. Only evaluations that played the same episodes under the same
// rules share a table: equal environments with equal versions and settings, equal seeds and numbers of episodes, an equal
// turn protocol and equal sampling. All others form further tables, each with the settings in which it differs from the
// first. Pure functions.
import { isRecord } from '../common/json';
import { configLeaves } from './config-leaves';
import type { EvaluatedSuccess, Evaluation } from './evaluation-file';
import type { Manifest } from './run-manifest';
import { valueAt } from './changeable-settings';

/** A finished evaluation: its run's manifest and its `evaluation.json`. */
export interface EvaluatedRun {
  readonly manifest: Pick<Manifest, 'id' | 'name' | 'created' | 'config' | 'model'>;
  readonly name: string;
  readonly evaluation: Evaluation;
}

export interface LeaderboardRow {
  readonly run: string;
  /** The user's name of the run. */
  readonly name: string;
  readonly model: string;
  readonly parameters: number;
  /** Success by environment tag. */
  readonly success: Readonly<Record<string, EvaluatedSuccess>>;
  readonly overall: EvaluatedSuccess;
  /** Episodes whose environment failed; they are not part of the success. */
  readonly failedEnvironments: number;
  /** Tokens that the model generated. */
  readonly tokens: number;
  /** Tokens of the requests to an API; null for a local model. */
  readonly inputTokens: number | null;
  /** Cost in the currency of the configured prices; null if it is unknown. */
  readonly cost: number | null;
  readonly seconds: number;
  readonly created: string;
}

export interface LeaderboardTable {
  /** Environment tags, in the order of the configuration. */
  readonly tags: readonly string[];
  /** The highest mean success first; rows without a success last. */
  readonly rows: readonly LeaderboardRow[];
  /** Settings in which the table differs from the first table; empty for the first. */
  readonly differences: readonly string[];
}

/** Returns the tables, the one with the most evaluations first; of equal numbers, the one with the newest. */
export function leaderboardOf(runs: readonly EvaluatedRun[]): LeaderboardTable[] {
  const groups = new Map<string, { rules: Map<string, string>; runs: EvaluatedRun[] }>();
  for (const run of runs) {
    const rules = rulesOf(run);
    const key = JSON.stringify([...rules].sort(([a], [b]) => (a < b ? -1 : 1)));
    const group = groups.get(key);
    if (group) group.runs.push(run);
    else groups.set(key, { rules, runs: [run] });
  }
  const newest = (group: { runs: EvaluatedRun[] }): string =>
    group.runs.map(({ manifest }) => manifest.created).reduce((a, b) => (a > b ? a : b));
  const ordered = [...groups.values()].sort(
    (a, b) => b.runs.length - a.runs.length || (newest(a) < newest(b) ? 1 : newest(a) > newest(b) ? -1 : 0),
  );
  return ordered.map(({ rules, runs: members }, i) => ({
    tags: tagsIn(members[0].evaluation),
    rows: members
      .map(rowOf)
      .sort((a, b) => (b.overall.success?.mean ?? -1) - (a.overall.success?.mean ?? -1) || (a.run < b.run ? -1 : 1)),
    differences: i === 0 ? [] : differencesOf(ordered[0].rules, rules),
  }));
}

const tagsIn = ({ tags }: Evaluation): string[] => Object.keys(tags);

/** Keys of a configuration that change which episodes are played, or how. Keys below them belong to them. */
const ruleKeys = [
  ...['env_groups', 'group_size', 'env_configs'].map(key => `es_manager.val.${key}`),
  ...[
    'context_window_mode',
    'max_context_window',
    'max_turn',
    'action_sep',
    'max_actions_per_turn',
    'enable_think',
  ].map(key => `agent_proxy.${key}`),
  ...['response_length', 'max_model_len'].map(key => `actor_rollout_ref.rollout.${key}`),
  ...['seed.val', 'trainer.validation_steps', 'workbench.compat'],
];

/** Keys of a tag that do not change its episodes. */
const idleTagKeys = /^(parallel_friendly|max_workers)$/;
const samplingKeys = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty'] as const;

/** Returns the settings that two evaluations must share, as text by key. */
function rulesOf({ manifest: { config }, evaluation }: EvaluatedRun): Map<string, string> {
  const rules = new Map<string, string>();
  const leaves = configLeaves(config);
  for (const [key, value] of leaves)
    if (ruleKeys.some(rule => key === rule || key.startsWith(`${rule}.`))) rules.set(key, String(value));
  for (const [tag, { versions }] of Object.entries(evaluation.tags)) {
    rules.set(`version of ${tag}`, [...versions].sort().join(', '));
    const settings = isRecord(config.custom_envs) ? config.custom_envs[tag] : undefined;
    if (isRecord(settings))
      for (const [key, value] of configLeaves(settings))
        if (!idleTagKeys.test(key)) rules.set(`custom_envs.${tag}.${key}`, String(value));
  }
  for (const [key, value] of samplingOf(config)) rules.set(`sampling: ${key}`, value);
  return rules;
}

/** Returns the sampling of a validation, or of an API model's requests; greedy decoding has temperature 0. */
function samplingOf(config: Readonly<Record<string, unknown>>): [string, string][] {
  const api = apiModelOf(config);
  const off: Record<(typeof samplingKeys)[number], unknown[]> = {
    ...{ temperature: [], top_p: [1], top_k: [-1, 0], min_p: [0], repetition_penalty: [1] },
  };
  const given = api ? api.generation_kwargs : valueAt(config, 'actor_rollout_ref.rollout.val_kwargs');
  const values = isRecord(given) ? given : {};
  const greedy = !api && values.do_sample === false;
  return samplingKeys.map(key => {
    const value = greedy && key === 'temperature' ? 0 : greedy ? undefined : values[key];
    if (value === undefined || value === null || off[key].includes(value))
      return [key, key === 'temperature' ? 'the service’s default' : 'off'];
    return [key, JSON.stringify(value)];
  });
}

function apiModelOf(config: Readonly<Record<string, unknown>>): Record<string, unknown> | null {
  const name = valueAt(config, 'model_config.model_name');
  const models = config.model_info;
  if (typeof name !== 'string') return null;
  const model = isRecord(models) ? models[name] : undefined;
  return isRecord(model) ? model : {};
}

function differencesOf(first: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): string[] {
  const keys = [...new Set([...first.keys(), ...other.keys()])];
  return keys
    .filter(key => first.get(key) !== other.get(key))
    .map(key => `${key}: ${other.get(key) ?? 'none'} instead of ${first.get(key) ?? 'none'}`);
}

function rowOf({ manifest, name, evaluation }: EvaluatedRun): LeaderboardRow {
  const { tags, overall, api, generated_tokens, wall_s } = evaluation;
  return {
    ...{ run: manifest.id, name, model: modelName(manifest), parameters: manifest.model.parameters },
    ...{ success: tags, overall, tokens: generated_tokens, seconds: wall_s, created: manifest.created },
    failedEnvironments: Object.values(tags).reduce((sum, tag) => sum + tag.failed_environments, 0),
    inputTokens: api?.input_tokens ?? null,
    cost: api?.cost ?? null,
  };
}

/** Returns the name of the evaluated model: of an API model, of a run's checkpoint, or of a folder or hub model. */
function modelName({ config, model }: EvaluatedRun['manifest']): string {
  const api = valueAt(config, 'model_config.model_name');
  if (typeof api === 'string') return api;
  const adapter = valueAt(config, 'actor_rollout_ref.model.lora_adapter_path');
  const path = typeof adapter === 'string' && adapter !== '' ? adapter : model.path;
  const [, run, step] = /([^/\\]+)[/\\]checkpoints[/\\](step-\d+)[/\\]?$/.exec(path) ?? [];
  if (run !== undefined) return `${run} ${step}`;
  const isFolder = /^([/\\~.]|[A-Za-z]:)/.test(path);
  const last = isFolder ? (path.split(/[/\\]/).findLast(part => part !== '') ?? path) : path;
  return model.revision === undefined || last.includes('@') ? last : `${last}@${model.revision.slice(0, 12)}`;
}
