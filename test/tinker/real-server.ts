// A real Tinker server for tests: SkyRL 0.3.0 with the JAX backend on this machine's CPU, and a small Qwen3 model that
// this process writes, or one that is given, so that both the server and the local engine can load it.
import { spawn, type ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { parameterSpecs, parseDecoderConfig } from '../../extension/models/decoder/decoder-config';
import { safetensorsParts } from '../../extension/models/weights/safetensors-writer';
import { Weights, initialize } from '../../extension/models/weights/weights';

const here = import.meta.dirname;
const python = resolve(here, '../../.tinker/bin/python');

/** Whether test/tinker/install.mjs has installed the server. */
export const installed = existsSync(resolve(here, '../../.tinker/installed'));
if (!installed && process.env.RAGEN_REQUIRE_TINKER === '1')
  throw new Error('RAGEN_REQUIRE_TINKER is set, but there is no server: run node test/tinker/install.mjs');

const config = {
  architectures: ['Qwen3ForCausalLM'],
  model_type: 'qwen3',
  vocab_size: 800,
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 2048,
  rms_norm_eps: 1e-6,
  rope_theta: 10_000,
  tie_word_embeddings: true,
  hidden_act: 'silu',
  torch_dtype: 'float32',
  attention_bias: false,
  use_sliding_window: false,
  eos_token_id: 795,
  pad_token_id: 793,
};

/** Writes the model with random weights and the tokenizer of ragen-tiny. */
function writeModel(folder: string): void {
  cpSync(resolve(here, '../../media/models/ragen-tiny'), folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
  const weights = new Weights(parameterSpecs(parseDecoderConfig(config, 'config.json')));
  initialize(weights, new RandomStream(3), 0.08);
  const tensors = weights.specs.map(({ name, dims }) => ({ name, shape: dims, data: weights.view(name) }));
  writeFileSync(join(folder, 'model.safetensors'), Buffer.concat(safetensorsParts(tensors)));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
  const { port } = server.address() as AddressInfo;
  await new Promise(done => server.close(done));
  return port;
}

export class RealServer {
  readonly folder = mkdtempSync(join(tmpdir(), 'ragen-tinker-'));
  readonly model: string;
  url = '';
  private process: ChildProcess | undefined;
  private printed = '';
  private port = 0;

  /** @param given folder of the server's base model; without it, a random model is written */
  constructor(private readonly given?: string) {
    this.model = given ?? join(this.folder, 'model');
  }

  /** Starts the server, on the same port and with the same checkpoints after a `kill`; resolves when it answers. */
  async start(): Promise<void> {
    if (this.url === '') {
      if (this.given === undefined) writeModel(this.model);
      mkdirSync(join(this.folder, 'checkpoints'));
      this.port = await freePort();
      this.url = `http://127.0.0.1:${this.port}`;
    }
    const backend = { max_lora_adapters: 4, max_lora_rank: 8, train_micro_batch_size: 8, sample_max_num_sequences: 8 };
    this.process = spawn(
      python,
      [
        join(here, 'serve.py'),
        ...['--base-model', this.model, '--backend', 'jax', '--port', String(this.port)],
        ...['--backend-config', JSON.stringify(backend), '--checkpoints-base', join(this.folder, 'checkpoints')],
        ...['--database-url', `sqlite:///${join(this.folder, 'tinker.db')}`],
      ],
      {
        cwd: this.folder,
        detached: true,
        env: {
          PATH: process.env.PATH,
          HOME: this.folder,
          PYTHONPATH: join(here, 'stubs'),
          JAX_PLATFORMS: 'cpu',
          HF_HUB_OFFLINE: '1',
          JAX_COMPILATION_CACHE_DIR: join(this.folder, 'compiled'),
          JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS: '0',
          JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES: '-1',
        },
      },
    );
    for (const stream of [this.process.stdout!, this.process.stderr!])
      stream.on('data', (bytes: Buffer) => (this.printed = (this.printed + bytes.toString()).slice(-20_000)));
    while (!(await this.answers())) {
      if (this.process.exitCode !== null) throw new Error(`the Tinker server ended:\n${this.printed}`);
      await new Promise(done => setTimeout(done, 250)); // eslint-disable-line no-restricted-syntax -- polls until it answers
    }
  }

  private async answers(): Promise<boolean> {
    try {
      return (await fetch(`${this.url}/api/v1/healthz`)).ok;
    } catch {
      return false;
    }
  }

  /** Kills the server and its engine. */
  async kill(): Promise<void> {
    const ended = new Promise(done => this.process!.once('close', done));
    process.kill(-this.process!.pid!, 'SIGKILL');
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
