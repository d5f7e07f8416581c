// What the makers of the bundled models share: the environments whose episodes are demonstrated, the demonstrator and
// the model as players of these episodes, the files of a new model folder, and its weights.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installation } from '../../node/installation';
import type { OptimizerOptions } from '../../engine/loss-options';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { Weights } from '../../models/weights/weights';
import { transformersName } from '../../models/vision/stored-names';
import { readDecoderConfig } from '../../models/weights/model-folder';
import { streamSafetensors, writeSafetensors } from '../../models/weights/safetensors-writer';
import type { EnvironmentPool } from '../../environments/client/environment-pool';
import { EnvironmentProcess } from '../../environments/client/environment-process';
import { environmentSpecs } from '../../environments/client/environment-specs';
import { environmentVariables } from '../../environments/client/environment-variables';
import type { LoadedEnvironment } from '../../protocol/environment-link';
import type { RunConfig } from '../config/schema';
import { AgentProxy } from '../rollout/agent-proxy';
import type { ObservedPictures } from '../rollout/observed-pictures';
import type { PromptTokenizer } from '../rollout/prompt-tokenizer';
import type { TextGenerator } from '../rollout/rollout-request';
import type { DemonstratorTools } from './demonstrator';
import { chatTemplate, pictureTemplate } from './plain-chat';

/** Limits of an engine pass: none, because a batch of short demonstrations always fits into one pass. */
export const unlimitedPass = { maxTokens: Infinity, maxRows: Infinity };

/** The options of AdamW for supervised training; the learning rate varies. */
export const adamOptions: Omit<OptimizerOptions, 'lr'> = {
  betas: [0.9, 0.98],
  eps: 1e-8,
  weight_decay: 0.01,
  grad_clip: 1,
};

/** The environments of a configuration's training tags, in an environment process. */
export interface DemonstratedEnvironments {
  config: RunConfig;
  pool: EnvironmentProcess;
  loaded: LoadedEnvironment[];
}

/**
 * Loads the environments of `config`'s training tags, calls `work`, and ends the environment process.
 * @throws Error if an environment cannot be loaded
 */
export async function withEnvironments<T>(
  config: RunConfig,
  printLine: (text: string) => void,
  work: (environments: DemonstratedEnvironments) => Promise<T>,
): Promise<T> {
  const tags = [...new Set([...config.es_manager.train.env_configs.tags, ...config.es_manager.val.env_configs.tags])];
  const specs = environmentSpecs(tags, config.custom_envs, installation.environments, installation.root);
  const pool = await EnvironmentProcess.start({
    entry: installation.environmentHost,
    variables: environmentVariables(specs, installation.environments),
    stepTimeoutMs: 10_000,
    onNotice: notice => printLine(`${notice.tag}: ${notice.text}`),
  });
  try {
    const { environments: loaded, error } = await pool.load(specs);
    if (error) throw new Error(error.message);
    return await work({ config, pool, loaded });
  } finally {
    await pool.stop();
  }
}

/** Returns the tag of a training episode, given the episode's id. */
export function tagOfRow(config: RunConfig, row: string): string {
  const { tags, n_groups } = config.es_manager.train.env_configs;
  const group = Number(/-g(\d+)-/.exec(row)?.[1] ?? 0);
  let last = 0;
  return tags[n_groups.findIndex(count => group < (last += count))];
}

/** Returns the solver for a demonstrator: it names the solver's actions as the model does. */
export const solverOf =
  ({ config, pool, loaded }: DemonstratedEnvironments): DemonstratorTools['solve'] =>
  async rows => {
    const solutions = await pool.solve([...rows]);
    return new Map(
      solutions.map(({ episode, actions = [] }) => {
        const names = loaded.find(({ tag }) => tag === tagOfRow(config, episode))?.actions;
        return [episode, actions.map(action => names?.[Number(action)] ?? String(action))];
      }),
    );
  };

/** Returns what a demonstrator needs of the model's own tokenizer. */
export const demonstratorTools = (tokenizer: ChatTokenizer): Omit<DemonstratorTools, 'solve'> => ({
  encode: text => tokenizer.encode(text),
  decode: ids => tokenizer.decode(ids),
  stopTokenId: tokenizer.stopTokenIds[0],
});

/**
 * Returns the agent proxy by which `generator`, a demonstrator or the model, plays the configuration's episodes.
 * @param pictures receives the pictures of observations; without it, environments with pictures are refused
 */
export function playerOf(
  { config, pool }: Pick<DemonstratedEnvironments, 'config'> & { pool: EnvironmentPool },
  generator: TextGenerator,
  tokenizer: PromptTokenizer,
  stop_token_ids: number[],
  max_model_len: number,
  pictures?: Pick<ObservedPictures, 'admit'>,
): AgentProxy {
  return new AgentProxy(generator, pool, tokenizer, {
    seed: config.seed,
    agent_proxy: config.agent_proxy,
    enable_response_mask: true,
    ragen: false,
    rollout: { ...config.actor_rollout_ref.rollout, max_model_len },
    es_manager: config.es_manager,
    custom_envs: config.custom_envs,
    async_rollout: true,
    max_failed_episodes_share: 0,
    stop_token_ids,
    ...(pictures && { pictures }),
  });
}

/** Keys of config.json that differ between the bundled models. */
export interface ModelShape {
  architectures: string[];
  model_type: string;
  torch_dtype: string;
  hidden_size: number;
  intermediate_size: number;
  num_hidden_layers: number;
  num_attention_heads: number;
  num_key_value_heads: number;
  head_dim: number;
  /** Most tokens of a sequence; also the tokenizer's limit. */
  max_position_embeddings: number;
}

/** What a vision-language model of type qwen2_5_vl or qwen3_vl has besides a decoder's shape. */
export interface VisionShape {
  /** The section vision_config of config.json. */
  vision_config: Record<string, unknown>;
  /** The decoder's rotary positions; `mrope_section`: numbers of pairs that rotate by time, by row and by column. */
  rope_parameters: { rope_type: 'default'; rope_theta: number; mrope_section: number[] };
  /** The content of preprocessor_config.json. */
  processor: Record<string, unknown>;
}

/**
 * Writes all files of a new model folder except the weights. Returns the number of tokens of the vocabulary.
 * @param vision makes the model a vision-language model; the tokenizer must then have `pictureTokens`
 */
export function writeModelFiles(
  folder: string,
  tokenizer: object,
  { torch_dtype, ...shape }: ModelShape,
  vision?: VisionShape,
): number {
  mkdirSync(folder, { recursive: true });
  const write = (name: string, content: object | string): void =>
    writeFileSync(join(folder, name), typeof content === 'string' ? content : `${JSON.stringify(content, null, 1)}\n`);
  write('tokenizer.json', tokenizer);
  write('tokenizer_config.json', {
    tokenizer_class: 'PreTrainedTokenizerFast',
    eos_token: '<|im_end|>',
    pad_token: '<|endoftext|>',
    clean_up_tokenization_spaces: false,
    model_max_length: shape.max_position_embeddings,
  });
  write('chat_template.jinja', vision ? pictureTemplate : chatTemplate);
  const { added_tokens: added, model } = tokenizer as {
    added_tokens: { id: number; content: string }[];
    model: { vocab: object };
  };
  const idOf = (content: string): number => added.find(token => token.content === content)!.id;
  const eos = idOf('<|im_end|>');
  const vocab_size = Object.keys(model.vocab).length + added.length;
  const { architectures, model_type, ...sizes } = shape;
  const decoder = {
    vocab_size,
    ...sizes,
    rms_norm_eps: 1e-6,
    ...(vision ? { rope_parameters: vision.rope_parameters } : { rope_theta: 10_000 }),
    tie_word_embeddings: true,
    hidden_act: 'silu',
  };
  const ids = { eos_token_id: eos, pad_token_id: idOf('<|endoftext|>') };
  write(
    'config.json',
    vision
      ? {
          architectures,
          model_type,
          // Without bos_token_id, transformers assumes that of Qwen's vocabulary.
          text_config: { model_type: `${model_type}_text`, ...decoder, bos_token_id: null, ...ids },
          vision_config: { model_type: `${model_type}_vision`, ...vision.vision_config },
          image_token_id: idOf('<|image_pad|>'),
          vision_start_token_id: idOf('<|vision_start|>'),
          vision_end_token_id: idOf('<|vision_end|>'),
          tie_word_embeddings: true,
          torch_dtype,
          ...ids,
        }
      : { architectures, model_type, ...decoder, torch_dtype, ...ids },
  );
  if (vision) write('preprocessor_config.json', vision.processor);
  write('generation_config.json', { eos_token_id: [eos, idOf('<|endoftext|>')], pad_token_id: idOf('<|endoftext|>') });
  return vocab_size;
}

/**
 * Writes model.safetensors, with transformers' names of the tensors; `BF16` rounds each weight. The folder must have its
 * config.json.
 */
export async function writeWeights(folder: string, weights: Weights, dtype: 'F32' | 'BF16'): Promise<void> {
  const config = readDecoderConfig(folder);
  const tensors = weights.specs.map(({ name, dims, stored: shape = dims }) => ({
    name: transformersName(config, name),
    shape,
    data: weights.view(name),
  }));
  const file = join(folder, 'model.safetensors');
  if (dtype === 'F32') await writeSafetensors(file, tensors);
  else
    await streamSafetensors(
      file,
      tensors.map(({ data, ...tensor }) => ({ ...tensor, blocks: () => blocksOf(data) })),
      dtype,
    );
}

async function* blocksOf(data: Float32Array): AsyncGenerator<Float32Array> {
  yield data;
}
