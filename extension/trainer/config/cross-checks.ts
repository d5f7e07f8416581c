// Rules that a schema cannot express, because they relate several keys: RAGEN's assertions, and rules against
// combinations that would fail later in a run or have no effect. The rules of the algorithm, the policy and secrets are
// in algorithm-checks.ts, policy-checks.ts and secret-checks.ts.
import type { BrokenRule } from './broken-rule';
import { shown } from './config-error';
import type { RunConfig } from './schema';
import type { JudgeSettings } from './schema-rewards';
import { didYouMean } from '../../common/suggest';
import { batchRules, advantageRules, maskRules, filterRules } from './algorithm-checks';
import { tagProtocol } from '../rollout/turn-protocol';
import { distillationRules } from './distillation-checks';
import { descriptionRules } from './description-checks';
import { pluginPathRules } from './plugin-checks';
import { samplingRules, adapterRules, optimizerRules } from './policy-checks';
import { engineRules } from './engine-checks';
import { secretRules } from './secret-checks';

/** Returns all rules that `config` violates, in key order. */
export function brokenRules(config: RunConfig): BrokenRule[] {
  return [
    ...groupRules(config),
    ...curriculumRules(config),
    ...contextRules(config),
    ...rewardRules(config),
    ...playerRules(config),
    ...descriptionRules(config),
    ...batchRules(config),
    ...advantageRules(config),
    ...distillationRules(config),
    ...maskRules(config),
    ...samplingRules(config),
    ...adapterRules(config),
    ...optimizerRules(config),
    ...engineRules(config),
    ...filterRules(config),
    ...courseRules(config),
    ...pluginPathRules(config),
    ...resumeRules(config),
    ...gradientRules(config),
    ...secretRules(config),
  ];
}

function groupRules({ es_manager, custom_envs }: RunConfig): BrokenRule[] {
  return (['train', 'val'] as const).flatMap(mode => {
    const at = `es_manager.${mode}`;
    const { env_groups, env_configs } = es_manager[mode];
    const { tags, n_groups } = env_configs;
    const broken: BrokenRule[] = tags
      .map((name, index) => ({ name, key: `${at}.env_configs.tags[${index}]` }))
      .filter(({ name }) => !Object.hasOwn(custom_envs, name))
      .map(({ name, key }) => {
        const remedy = didYouMean(name, Object.keys(custom_envs), 'add it to custom_envs');
        return { key, sentence: `is ${shown(name)}, which is not a tag of custom_envs: ${remedy}` };
      });
    const total = n_groups.reduce((sum, n) => sum + n, 0);
    if (tags.length !== n_groups.length)
      broken.push({
        key: `${at}.env_configs.n_groups`,
        sentence: `has ${n_groups.length} numbers for ${tags.length} tags: give one number per tag`,
      });
    else if (total !== env_groups)
      broken.push({
        key: `${at}.env_groups`,
        sentence: `is ${env_groups}, but the sum of n_groups is ${total}: make the two numbers equal`,
      });
    return broken;
  });
}

/**
 * Rules for a gradient analysis that uses a separate rollout. The tags share the groups of this rollout in the same
 * proportions as in training, so the number of groups must permit these proportions.
 */
function gradientRules({ trainer, es_manager }: RunConfig): BrokenRule[] {
  const groups = trainer.gradient_analysis_env_groups;
  const { env_groups, env_configs } = es_manager.train;
  const { n_groups } = env_configs;
  if (groups === null || n_groups.every(n => (n * groups) % env_groups === 0)) return [];
  const sentence = `is ${groups}, which cannot be split among the tags in the ratio ${n_groups.join(':')}: use a multiple of ${env_groups}`;
  return [{ key: 'trainer.gradient_analysis_env_groups', sentence }];
}

/** Rules for the curriculum over tags. */
function curriculumRules({ es_manager, workbench: { curriculum, compat } }: RunConfig): BrokenRule[] {
  if (!curriculum) return [];
  const at = 'workbench.curriculum';
  const { tags } = es_manager.train.env_configs;
  const different = new Set(tags).size;
  const { easy_above, hard_below } = curriculum;
  const broken: BrokenRule[] = [];
  const add = (key: string, sentence: string): void => void broken.push({ key, sentence });
  if (different === 1) add(at, 'is set, but training has one tag: set it to null, or train on several tags');
  if (different < tags.length)
    add(at, 'is set, but a tag occurs twice in es_manager.train.env_configs.tags: name it once');
  if (hard_below >= easy_above)
    add(`${at}.hard_below`, `is ${hard_below}, but easy_above is ${easy_above}: use a smaller value`);
  if (compat === 'ragen')
    add(at, 'is set, but RAGEN (workbench.compat=ragen) plays fixed numbers of groups: set it to null');
  return broken;
}

/** Rules for reward components. */
function rewardRules({ custom_envs, model_info }: RunConfig): BrokenRule[] {
  return Object.entries(custom_envs).flatMap(([tag, { rewards }]) => {
    const { min = 0, max = Infinity } = rewards?.thought_length ?? {};
    const at = `custom_envs.${tag}.rewards`;
    const judges = Object.entries(rewards?.judges ?? {}).map(([name, judge]) => [`judges.${name}`, judge] as const);
    const stateJudge = rewards?.state_judge ? [['state_judge', rewards.state_judge] as const] : [];
    const broken = [...judges, ...stateJudge].flatMap(([key, judge]) =>
      judgeRules(judge, `${at}.${key}`, model_info ?? {}),
    );
    if (min <= max) return broken;
    const sentence = `is ${min}, but the largest length (max) is ${max}: make min at most max`;
    return [{ key: `${at}.thought_length.min`, sentence }, ...broken];
  });
}

/** Rules for roles that models behind APIs play. */
function playerRules({ custom_envs, model_info }: RunConfig): BrokenRule[] {
  return Object.entries(custom_envs).flatMap(([tag, { roles }]) =>
    Object.entries(roles ?? {}).flatMap(([role, { model, max_cost }]) =>
      judgeRules({ models: [model], max_cost }, `custom_envs.${tag}.roles.${role}`, model_info ?? {}, 'model'),
    ),
  );
}

function judgeRules(
  { models, max_cost }: Pick<JudgeSettings, 'models' | 'max_cost'>,
  at: string,
  known: NonNullable<RunConfig['model_info']>,
  key?: 'model',
): BrokenRule[] {
  const unknown = models.findIndex(name => !Object.hasOwn(known, name));
  if (unknown >= 0) {
    const remedy = didYouMean(models[unknown], Object.keys(known), 'add it to model_info');
    const sentence = `is ${shown(models[unknown])}, which is not a model of model_info: ${remedy}`;
    return [{ key: `${at}.${key ?? `models[${unknown}]`}`, sentence }];
  }
  const free = models.find(name => !known[name].price_per_million);
  if (typeof max_cost !== 'number' || free === undefined) return [];
  const sentence = `is ${max_cost}, but model_info.${free} has no price_per_million: set its prices, or use max_tokens`;
  return [{ key: `${at}.max_cost`, sentence }];
}

function contextRules(config: RunConfig): BrokenRule[] {
  const { agent_proxy, workbench, rollout_manager } = config;
  const broken: BrokenRule[] = [];
  if (agent_proxy.max_context_window === 0) {
    const sentence = 'is 0, but the window includes the current turn: use 1 or more, or -1 for all turns';
    broken.push({ key: 'agent_proxy.max_context_window', sentence });
  }
  const { context_mask: mask } = workbench;
  const needs = (unmet: boolean, key: string, remedy: string) => {
    const sentence = `is ${shown(mask)}, but ${key}: ${remedy}`;
    if (mask !== 'none' && unmet) broken.push({ key: 'workbench.context_mask', sentence });
  };
  needs(
    agent_proxy.context_window_mode === 'single_turn',
    'context_window_mode is single_turn, whose prompts summarise earlier turns as text',
    'use full or limited_multi_turn',
  );
  const thoughtless = noThoughts(config);
  if (thoughtless) needs(true, `${thoughtless.cause}, so responses have no thought`, thoughtless.remedy);
  needs(
    !rollout_manager.use_loss_mask,
    'enable_response_mask is false, so the loss would cover earlier responses with tokens left out',
    'set it to true',
  );
  needs(workbench.compat === 'ragen', 'workbench.compat is ragen, which has no such masks', 'set compat to corrected');
  return broken;
}

/** Returns why the responses of all tags have no thought; null if those of a tag have one. */
function noThoughts({ agent_proxy, custom_envs, es_manager }: RunConfig): { cause: string; remedy: string } | null {
  const tags = [...es_manager.train.env_configs.tags, ...es_manager.val.env_configs.tags];
  if (tags.some(tag => tagProtocol(agent_proxy, custom_envs[tag]).enable_think)) return null;
  const formatted = tags.find(tag => custom_envs[tag]?.prompt_format);
  if (formatted === undefined) return { cause: 'enable_think is false', remedy: 'set it to true' };
  return { cause: `custom_envs.${formatted}.prompt_format is no_think`, remedy: 'choose free_think' };
}

function courseRules({ trainer }: RunConfig): BrokenRule[] {
  if (trainer.total_training_steps > 0 || trainer.val_only) return [];
  const sentence = 'is 0, but val_only is false: use 1 or more, or set trainer.val_only to true for an evaluation';
  return [{ key: 'trainer.total_training_steps', sentence }];
}

function resumeRules({ trainer }: RunConfig): BrokenRule[] {
  if (trainer.resume_mode !== 'resume_path' || trainer.resume_from_path !== null) return [];
  const sentence = 'is null, but resume_mode is resume_path: name the folder of a checkpoint, such as step-000100';
  return [{ key: 'trainer.resume_from_path', sentence }];
}
