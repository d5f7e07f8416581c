// Converts a configuration and a model's config.json into the input of the memory plan (models/memory/memory-plan.ts).
// This input contains the networks that a run loads, the size of the run's passes, and the number of concurrent
// rollouts. The weights are not needed, so a run can be planned before its model is downloaded.
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { builtInFilters } from '../../algorithms/built-in-filters';
import { selectsTokens, type LossMode } from '../../algorithms/policy-loss-options';
import { maximum } from '../../common/lists';
import { UserError } from '../../common/user-error';
import { lengthProblem } from '../config/model-length';
import { isPluginPath } from '../config/plugin-path';
import type { RunConfig } from '../config/schema';
import { teacherSource } from '../distillation/teacher-source';
import { HubCache } from '../../hub/hub-cache';
import type { LoadOptions } from '../../engine/load-options';
import { elements, parameterSpecs } from '../../models/decoder/decoder-config';
import type { DecoderConfig } from '../../models/decoder/decoder-config';
import type { PlanInput } from '../../models/memory/plan-input';
import type { Bounds } from '../../models/memory/memory-overrides';
import { openDecoder, readDecoderConfig, readEncoderConfig } from '../../models/weights/model-folder';
import { readAdapter } from '../../models/adapters/peft-adapter';
import { passBudget } from '../run/pass-budget';
import { plannedPictures } from './planned-pictures';
import { workersOf } from '../run/run-environments';
import { readRegularSync } from '../../node/regular-file';

/** Minimum number of parameters at which `auto` enables gradient checkpointing. */
const largeModel = 1e8;

/** Whether the backward pass recomputes activations (enable_gradient_checkpointing). */
function isCheckpointed({ actor_rollout_ref: { model } }: RunConfig, parameters: number): boolean {
  const { enable_gradient_checkpointing: wanted } = model;
  return wanted === 'auto' ? parameters >= largeModel : wanted;
}

/**
 * Returns the options of the adapters that the configuration creates; null if all weights are trained or an existing
 * adapter is continued.
 */
function newAdapters({ actor_rollout_ref: { model } }: RunConfig): LoadOptions['lora'] {
  const { lora_rank: rank, lora_alpha: alpha, lora_dropout: dropout, target_modules: targets } = model;
  return rank > 0 ? { rank, alpha, dropout, targets, exclude: model.exclude_modules } : null;
}

/** Returns which weights to load: the model, a full checkpoint of the model, or the base model with adapters. */
export function weightsLoaded(
  config: RunConfig,
  modelFolder: string,
  workspace: string,
  checkpoint: string | undefined,
): Pick<LoadOptions, 'modelFolder' | 'adapterFolder' | 'lora' | 'trainsEncoder' | 'encoderFolder'> {
  const { model, actor } = config.actor_rollout_ref;
  const encoder = { trainsEncoder: !actor.freeze_vision_tower, encoderFolder: modelFolder };
  const first = model.lora_adapter_path === null ? null : resolve(workspace, model.lora_adapter_path);
  if (model.lora_rank === 0 && first === null)
    return { modelFolder: checkpoint ?? modelFolder, adapterFolder: null, lora: null, ...encoder };
  return { modelFolder, adapterFolder: checkpoint ?? first, lora: newAdapters(config), ...encoder };
}

export function usesReference({ actor_rollout_ref: { actor }, algorithm, trainer }: RunConfig): boolean {
  return !trainer.val_only && actor.use_ref && (actor.use_kl_loss || algorithm.use_kl_in_reward);
}

/** Whether pictures are shown to the critic by the encoder of the model's folder, because the policy's is trained. */
const readsEncoder = (config: RunConfig): boolean =>
  usesCritic(config) && !config.actor_rollout_ref.actor.freeze_vision_tower;

/** Whether a teacher scores the sampled tokens (workbench.distillation). */
export const usesTeacher = ({ trainer, workbench }: RunConfig): boolean =>
  !trainer.val_only && workbench.distillation !== null;

/**
 * Whether any weights are read from the model's folder: as the complete model, as the base of adapters, as the
 * reference policy, or as the critic's vision encoder.
 */
export const readsModel = (config: RunConfig, loaded: Pick<LoadOptions, 'modelFolder'>, modelFolder: string): boolean =>
  loaded.modelFolder === modelFolder || usesReference(config) || readsEncoder(config);

/** Whether the rollout filter may need entropies; what a plug-in needs is known only once it is loaded. */
const mayFilterByEntropy = ({
  rollout_filter_metric: metric,
}: Pick<RunConfig['actor_rollout_ref']['rollout'], 'rollout_filter_metric'>): boolean =>
  isPluginPath(metric) || builtInFilters[metric].needs === 'entropy';

/**
 * Whether the policy computes the samples' log-probs or entropies before the update. The log-probs are the old
 * log-probs of the loss; the entropies are for a rollout filter that needs them.
 */
const scoresBeforeUpdate = (config: RunConfig): boolean =>
  !config.algorithm.rollout_correction.bypass_mode ||
  mayFilterByEntropy(config.actor_rollout_ref.rollout) ||
  usesSquares(config);

/** Whether a plug-in computes the policy loss. */
export const usesOwnLoss = ({ actor_rollout_ref: { actor } }: RunConfig): boolean =>
  isPluginPath(actor.policy_loss.loss_mode);

/** Returns the loss mode of the update graph; the surrogate of a plug-in's loss is `vanilla` (plugin-loss.ts). */
export const builtInLoss = ({ actor_rollout_ref: { actor } }: RunConfig): LossMode =>
  isPluginPath(actor.policy_loss.loss_mode) ? 'vanilla' : actor.policy_loss.loss_mode;

/** Whether the advantage estimator needs the sums of squared probabilities of the policy's distributions. */
export const usesSquares = ({ algorithm }: RunConfig): boolean =>
  algorithm.adv_estimator === 'tir_optimal_token_baseline';

export const usesCritic = ({ algorithm, trainer }: RunConfig): boolean =>
  !trainer.val_only && algorithm.adv_estimator === 'gae';

/**
 * Whether template collapse is diagnosed. This requires that `collapse_detection` or `workbench.collapse_turn_uniform`
 * enables at least one selection of turns, and that the context mode is `full`.
 */
export const diagnosesCollapse = ({ agent_proxy, collapse_detection: wanted, workbench }: RunConfig): boolean =>
  agent_proxy.context_window_mode === 'full' &&
  (wanted.first_turn_enabled || wanted.multi_turn_enabled || workbench.collapse_turn_uniform);

/**
 * Returns the memory plan's input for a run of `config`.
 * @param modelFolder folder with config.json; the weights may be missing
 * @param workspace base folder for relative paths of the configuration
 * @throws UserError if config.json, existing weights or the adapter cannot be used
 */
export async function planInput(config: RunConfig, modelFolder: string, workspace: string): Promise<PlanInput> {
  const teacherFolder = await plannedTeacher(config, workspace);
  const { actor, ref, rollout, model } = config.actor_rollout_ref;
  const { decoder, stored } = await decoderPlanned(modelFolder);
  const isLocal = config.workbench.engine === 'local'; // a server's model reads text only
  const pictures = isLocal ? plannedPictures(config, modelFolder, stored) : undefined;
  checkLength(config, decoder);
  const longest = rollout.max_model_len;
  const { train, val } = config.es_manager;
  const trains = !config.trainer.val_only;
  // Returns the maximum number of tokens of a pass over min(`micro`, `most`) episodes. One full-length episode always
  // fits.
  const pass = (micro: number, most: number): number =>
    Math.max(longest, passBudget(config, Math.min(micro, most), most).maxTokens);
  const all = episodesOf(train);
  const given =
    model.lora_adapter_path === null
      ? null
      : await readAdapter(resolve(workspace, model.lora_adapter_path), {
          config: decoder,
          folder: modelFolder,
          encoder: readEncoderConfig(modelFolder),
        });
  const trainsEncoder = given ? given.adaptsEncoder : !actor.freeze_vision_tower;
  return {
    decoder,
    stored,
    lora: given?.lora ?? newAdapters(config),
    ...(trainsEncoder && { trainedEncoder: readEncoderConfig(modelFolder) }),
    rolloutQuantization: config.workbench.rollout_quantization,
    baseQuantization: config.workbench.base_quantization,
    moments: { actor: actor.optim.moments, critic: config.critic.optim.moments },
    checkpointed: isCheckpointed(config, countParameters(decoder)),
    reference: usesReference(config),
    critic: usesCritic(config),
    ...(teacherFolder !== undefined && { teacher: await decoderPlanned(teacherFolder) }),
    ...(pictures && { pictures }),
    klLoss: actor.use_kl_loss,
    lossMode: builtInLoss(config),
    trains,
    longest,
    updateTokens: pass(actor.ppo_micro_batch_size_per_gpu, actor.ppo_mini_batch_size),
    criticTokens: pass(config.critic.ppo_micro_batch_size_per_gpu, config.critic.ppo_mini_batch_size),
    scoreTokens:
      scoresBeforeUpdate(config) || selectsTokens(builtInLoss(config)) || usesOwnLoss(config)
        ? pass(rollout.log_prob_micro_batch_size_per_gpu, all)
        : 0,
    referenceTokens: pass(ref.log_prob_micro_batch_size_per_gpu, all),
    diagnosisTokens: diagnosesCollapse(config) ? pass(rollout.log_prob_micro_batch_size_per_gpu, all) : 0,
    environments: environmentProcesses(config, trains),
    sharesPrefixes: true,
    answer: Math.min(rollout.response_length, longest),
    promptSharedBy: trains && config.agent_proxy.max_turn === 1 ? train.group_size : 0,
    rollouts: Math.max(trains ? episodesOf(train) : 0, episodesOf(val)),
  };
}

/** Returns the teacher's folder; undefined without a teacher on this machine, or if it is not downloaded yet. */
async function plannedTeacher(config: RunConfig, workspace: string): Promise<string | undefined> {
  const teacher = config.workbench.distillation?.teacher ?? null;
  if (teacher === null || !usesTeacher(config)) return undefined;
  const source = teacherSource(teacher, workspace);
  if ('folder' in source) return source.folder;
  const cache = new HubCache(source.hub.repo);
  const commit = await cache.commitOf(source.hub.revision);
  return commit === null ? undefined : (await cache.complete(commit))?.folder;
}

/** Returns the number of environment processes: the maximum over the tags in use (run-environments.ts). */
export function environmentProcesses({ custom_envs, es_manager: { train, val } }: RunConfig, trains: boolean): number {
  const tags = [...(trains ? train.env_configs.tags : []), ...val.env_configs.tags];
  return maximum(tags.map(tag => workersOf(custom_envs[tag])));
}

const episodesOf = ({ env_groups, group_size }: RunConfig['es_manager']['val']): number => env_groups * group_size;

/**
 * Returns overrides that lower the number of concurrent validation episodes to the number in training. Returns null if
 * validation has no more episodes than training, if validation has several tags, or if no validation group would
 * remain.
 */
export function fewerEpisodes({ es_manager: { train, val } }: RunConfig): Bounds['fewerEpisodes'] {
  const groups = Math.floor(episodesOf(train) / val.group_size);
  if (groups < 1 || groups >= val.env_groups || val.env_configs.n_groups.length !== 1) return null;
  return {
    rollouts: episodesOf(train),
    overrides: [`es_manager.val.env_groups=${groups}`, `es_manager.val.env_configs.n_groups=[${groups}]`],
  };
}

export const countParameters = (decoder: DecoderConfig): number =>
  parameterSpecs(decoder).reduce((sum, { dims }) => sum + elements(dims), 0);

/** Throws a UserError if max_model_len exceeds the model's maximum number of positions. */
function checkLength(config: RunConfig, { maxPositions }: Pick<DecoderConfig, 'maxPositions'>): void {
  const problem = lengthProblem(config, maxPositions);
  if (problem !== undefined) throw new UserError(problem);
}

const types = { float32: 'F32', float16: 'F16', bfloat16: 'BF16' } as const;

/**
 * Returns the decoder and the dtype of its weights. The dtype is read from the weights if they exist, otherwise from
 * config.json.
 */
async function decoderPlanned(folder: string): Promise<Pick<PlanInput, 'decoder' | 'stored'>> {
  const isThere = readdirSync(folder).some(name => name.endsWith('.safetensors'));
  if (isThere) {
    const { config, files, specs } = await openDecoder(folder);
    const dtype = files.info(specs[0].name)?.dtype;
    await files.close();
    return { decoder: config, stored: Object.values(types).find(type => type === dtype) ?? 'F32' };
  }
  const json = JSON.parse(readRegularSync(join(folder, 'config.json')).toString('utf8')) as Record<string, unknown>;
  const said = json.dtype ?? json.torch_dtype; // `dtype` since transformers 5, `torch_dtype` before
  const stored = Object.entries(types).find(([name]) => name === said)?.[1] ?? 'F32';
  return { decoder: readDecoderConfig(folder), stored };
}
