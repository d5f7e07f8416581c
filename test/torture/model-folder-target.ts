// Fuzz target for complete model folders. Mutated folders are loaded in every way of the product: the check before a
// run, full fine-tuning, adapters over memory-mapped weights, an 8-bit base, and export. Each folder must load or be
// refused with one of the product's own error messages.
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { textHash } from '../../extension/run-data/episode-index-line';
import { UserError } from '../../extension/common/user-error';
import type { LoadOptions } from '../../extension/engine/load-options';
import type { SamplingOptions } from '../../extension/engine/generation-calls';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { parameterSpecs, parseDecoderConfig } from '../../extension/models/decoder/decoder-config';
import { exportModel } from '../../extension/models/weights/export-model';
import { initializeLora, loraSpecs } from '../../extension/models/adapters/lora';
import { readTokenizer } from '../../extension/models/weights/model-folder';
import { adapterFiles } from '../../extension/models/adapters/peft-adapter';
import { PolicyEngine } from '../../extension/models/policy-engine';
import { Weights, initialize } from '../../extension/models/weights/weights';
import { streamModel } from '../../extension/models/weights/safetensors-writer';
import { modelFacts } from '../../extension/cli/model-files/model-facts';
import { holds } from './fuzz-target';
import type { FuzzTarget } from './fuzz-target';
import { mutateFolder } from './model-folder-mutations';

/** Memory limit of the process in bytes; the models use a few hundred kilobytes. */
const mostResident = 1.5 * 2 ** 30;

const lora = { rank: 2, alpha: 4, dropout: 0, targets: 'all-linear' };
const plain: Omit<LoadOptions, 'modelFolder' | 'cacheFolder'> = {
  adapterFolder: null,
  device: 'cpu',
  threads: 1,
  lora: null,
  rolloutQuantization: 'none',
  baseQuantization: 'none',
  checkpointed: false,
  referenceFolder: null,
  critic: false,
  seed: 1,
  maxPositions: 64,
};
const sampling: SamplingOptions = {
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
  max_new_tokens: 2,
  stop_token_ids: [],
  stop: [],
  max_model_len: 64,
};

let work = '';
const path = (...names: string[]): string => join(work, ...names);

/** Writes a small Llama in two shards, with a tokenizer, a template and an adapter. */
async function makeModel(folder: string): Promise<void> {
  mkdirSync(folder);
  cpSync('test/golden/tokenizer/own.json', join(folder, 'tokenizer.json'));
  cpSync('media/models/ragen-tiny/chat_template.jinja', join(folder, 'chat_template.jinja'));
  writeFileSync(
    join(folder, 'tokenizer_config.json'),
    JSON.stringify({ eos_token: '<|im_end|>', model_max_length: 64 }),
  );
  writeFileSync(join(folder, 'generation_config.json'), JSON.stringify({ eos_token_id: [373, 375] }));
  const golden = JSON.parse(readFileSync('test/golden/llama/config.json', 'utf8')) as object;
  const json = { ...golden, vocab_size: 380, max_position_embeddings: 64, tie_word_embeddings: true };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(json));
  const config = parseDecoderConfig(json, 'config.json');
  const weights = new Weights(parameterSpecs(config));
  const stream = new RandomStream(5);
  initialize(weights, stream, 0.2);
  const tensors = weights.specs.map(({ name, dims }) => ({
    name,
    shape: dims,

    async *blocks() {
      yield weights.view(name);
    },
  }));
  await streamModel(folder, tensors, 'F32', 40_000);
  const factors = new Weights(loraSpecs(config, lora));
  initializeLora(factors, stream);
  mkdirSync(join(folder, 'adapter'));
  for (const [name, bytes] of Object.entries(adapterFiles({ lora, factors }, 'base')))
    writeFileSync(join(folder, 'adapter', name), bytes);
}

/**
 * The result of one way of loading. @throws any error that is not a UserError, and Broken if its message is not a
 * sentence
 */
async function outcome(load: () => Promise<unknown>): Promise<string> {
  try {
    await load();
    return 'loaded';
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const { message } = error;
    holds(
      !/[\n\r]/.test(message) && message.length < 2000,
      `the error message is not one sentence: ${message.slice(0, 300)}`,
    );
    holds(/\S: \S.*: \S/.test(message), `the error message lacks place, reason or remedy: ${message.slice(0, 300)}`);
    return 'refused';
  }
}

async function loadAndUse(options: Partial<LoadOptions>): Promise<void> {
  const modelFolder = path('model');
  const engine = new PolicyEngine();
  await engine.load({ ...plain, modelFolder, cacheFolder: path('cache'), ...options });
  const prompt = readTokenizer(modelFolder).encodePrompt([{ role: 'user', content: 'Up' }], '');
  const [{ ids }] = await engine.generate([{ row: 'a', append: prompt.slice(-20), seed: 1 }], sampling);
  holds(ids.length > 0, 'nothing was sampled');
}

export const modelFolderTarget: FuzzTarget = {
  name: 'model folders',
  form: 'bytes',
  corpus: ['a model folder of this number, which its mutations follow from'],
  weight: 1,
  mostMs: 3000,
  async begin() {
    work = mkdtempSync(join(tmpdir(), 'folders-'));
    await makeModel(path('sound'));
  },
  async run(input) {
    const stream = new RandomStream(textHash(input.toString('latin1')));
    const done = mutateFolder(path('sound'), path('model'), stream);
    rmSync(path('cache'), { recursive: true, force: true });
    rmSync(path('out'), { recursive: true, force: true });
    const adapterFolder = path('model', 'adapter');
    const ways: (() => Promise<unknown>)[] = [
      () => modelFacts(path('model'), work),
      () => loadAndUse({}),
      () => loadAndUse({ adapterFolder }),
      () => loadAndUse({ lora, baseQuantization: 'int8', rolloutQuantization: 'int8' }),
      () =>
        exportModel({
          model: path('model'),
          adapter: adapterFolder,
          format: 'onnx',
          out: path('out'),
          maxShardBytes: 40_000,
        }),
      () => exportModel({ model: path('model'), format: 'safetensors', out: path('out', 'plain'), maxShardBytes: 1e9 }),
    ];
    const outcomes: string[] = [];
    for (const way of ways) outcomes.push(await outcome(way));
    if (done.length === 0)
      holds(
        outcomes.every(each => each === 'loaded'),
        `a valid model is ${outcomes.join()}`,
      );
    const resident = process.memoryUsage.rss();
    holds(resident < mostResident, `the process uses ${Math.round(resident / 2 ** 20)} MiB`);
    if (outcomes.includes('refused')) throw new UserError('refused in one of the ways');
    return outcomes;
  },
  end: () => rmSync(work, { recursive: true, force: true }),
};
