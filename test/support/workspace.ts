// A workspace whose run trains in seconds: a random Qwen2 with 16 hidden units and the shipped tokenizer, an
// environment that accepts any text, and a configuration of 2 × 4 short episodes per step. The model's head favours the
// tokens that close an answer, so that only some answers parse and the groups differ in reward.
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { parameterSpecs, parseDecoderConfig } from '../../extension/models/decoder/decoder-config';
import { Weights, initialize } from '../../extension/models/weights/weights';
import { safetensorsParts } from '../../extension/models/weights/safetensors-writer';

/** The repository's root, resolved from this file or from a bundle that contains it. */
export const root = resolve(__dirname, __dirname.endsWith('dist') ? '../unit' : '../..');
const shipped = join(root, 'media/models/ragen-tiny');

const modelConfig = {
  model_type: 'qwen2',
  hidden_size: 16,
  intermediate_size: 24,
  num_hidden_layers: 1,
  num_attention_heads: 2,
  num_key_value_heads: 1,
  max_position_embeddings: 512,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: false,
  hidden_act: 'silu',
};

/** Logit of each closing token relative to all other tokens. */
const leaning = { '</answer>': 5.5, '<|im_end|>': 4.5 };

/** Writes a model folder in Hugging Face's form; the weights depend on the seed. */
export function writeModel(folder: string, seed = 7): void {
  mkdirSync(folder, { recursive: true });
  for (const name of ['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja', 'generation_config.json'])
    copyFileSync(join(shipped, name), join(folder, name));
  const { vocab_size } = JSON.parse(readFileSync(join(shipped, 'config.json'), 'utf8')) as { vocab_size: number };
  const json = { ...modelConfig, vocab_size };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(json));
  const config = parseDecoderConfig(json, folder);
  const weights = new Weights(parameterSpecs(config));
  initialize(weights, new RandomStream(seed), 0.1);
  // All embeddings have the same large first component, through which the head assigns each token a fixed logit.
  const { hiddenSize } = config;
  const embeddings = weights.view('model.embed_tokens.weight');
  for (let i = 0; i < embeddings.length; i += hiddenSize) embeddings[i] = 2;
  const { added_tokens } = JSON.parse(readFileSync(join(shipped, 'tokenizer.json'), 'utf8')) as {
    added_tokens: { id: number; content: string }[];
  };
  const head = weights.view('lm_head.weight');
  for (const [token, logit] of Object.entries(leaning))
    head[added_tokens.find(({ content }) => content === token)!.id * hiddenSize] = logit / Math.sqrt(hiddenSize);
  const tensors = weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) }));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat(safetensorsParts(tensors)));
}

/**
 * Source of an environment that accepts any text. The statements of `step` run at the start of each step, with
 * `action`, `seed`, `member`, `mode`, `config` and functions of node:fs in scope. While the file `<hold>.<mode>` exists,
 * steps of that mode create the file `<hold>.<mode>.reached.<content of the hold>` and wait (see held-episodes.ts).
 */
export const wordsEnvironment = (
  step = '',
): string => `import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { defineEnvironment } from 'ragen-workbench/api';

export default defineEnvironment({
  name: 'words',
  config: z.object({ hold: z.string().default('') }),
  instruction: 'Say a word.',
  create(config) {
    let seed = 0;
    let member = 0;
    let mode = 'train';
    return {
      reset(options) {
        ({ seed, member = 0, mode = 'train' } = options);
        return { observation: 'word ' + (seed % 7) };
      },
      async step(action) {
        const hold = config.hold + '.' + mode;

        await wait(hold);
        ${step}
        const length = String(action).length;
        const terminated = (length + seed) % 3 === 0;
        return {
          observation: 'heard ' + length,
          reward: (length % 5) / 2,
          terminated,
          truncated: false,
          info: { success: terminated, length },
        };
      },
    };
  },
});

/** Writes a mark with the content of a file, if the file exists, and waits until it is gone. */
async function wait(hold: string): Promise<void> {
  let content: string;
  try {
    content = readFileSync(hold, 'utf8');
  } catch {
    return;
  }
  writeFileSync(hold + '.reached.' + content, '');
  while (existsSync(hold)) await new Promise(done => setTimeout(done, 5));
}
`;

const configuration = `# A run of seconds.
defaults:
  - base
  - _self_

model_path: models/random
micro_batch_size_per_gpu: 4
log_prob_micro_batch_size_per_gpu: 8
ppo_mini_batch_size: 4

custom_envs:
  Words:
    env_type: environments/words.ts
    max_actions_per_traj: 4
    env_config:
      hold: ''

actor_rollout_ref:
  actor:
    use_ref: false
    optim:
      lr: 1e-2
  rollout:
    max_model_len: 400
    response_length: 12
    rollout_filter_value: 0.9
    rollout_filter_include_zero: false
    val_kwargs:
      temperature: 1.0

algorithm:
  adv_estimator: grpo

trainer:
  experiment_name: words
  total_training_steps: 4
  test_freq: 2
  save_freq: 1

agent_proxy:
  max_turn: 2
  enable_think: false

es_manager:
  train:
    env_groups: 2
    group_size: 4
    env_configs:
      tags: [Words]
      n_groups: [2]
  val:
    env_groups: 8
    group_size: 1
    env_configs:
      tags: [Words]
      n_groups: [8]

workbench:
  threads: 1
  step_timeout_ms: 2000
`;

export interface Workspace {
  folder: string;
  /** Writes a file into the workspace. */
  write(name: string, content: string | Uint8Array): string;
  remove(): void;
}

/** Creates a temporary workspace with the configuration `words`, its model and its environment. */
export function makeWorkspace(): Workspace {
  const folder = mkdtempSync(join(tmpdir(), 'ragen trainer-')); // the space tests the quoting of paths
  const write = (name: string, content: string | Uint8Array): string => {
    const file = join(folder, name);
    mkdirSync(join(file, '..'), { recursive: true });
    writeFileSync(file, content);
    return file;
  };
  write('config/words.yaml', configuration);
  write('environments/words.ts', wordsEnvironment());
  writeModel(join(folder, 'models/random'));
  return { folder, write, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
