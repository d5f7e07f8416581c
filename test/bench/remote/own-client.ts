// One side of client-comparison.mjs: the work of a round with this project's engine. Usage: own-client WORK.json; each
// line of standard input starts a round, whose seconds are printed as JSON.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { RandomStream } from '../../../extension/engine/sampling/random-stream';
import type { LoadOptions } from '../../../extension/engine/load-options';
import type { PolicyLossOptions } from '../../../extension/engine/loss-options';
import { TinkerEngine } from '../../../extension/models/tinker/tinker-engine';

interface Work {
  url: string;
  rank: number;
  vocabulary: number;
  prompt: number;
  rows: number;
  tokens: number;
}

const budget = { maxTokens: Infinity, maxRows: Infinity };
const adam = { lr: 1e-4, betas: [0.9, 0.999] as [number, number], eps: 1e-8, weight_decay: 0, grad_clip: 1 };
const loss: PolicyLossOptions = {
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0,
  kl_loss_type: 'low_var_kl',
  loss_agg_mode: 'token-mean',
  temperature: 1,
};

async function main(): Promise<void> {
  const work = JSON.parse(readFileSync(process.argv[2], 'utf8')) as Work;
  const engine = new TinkerEngine({
    url: work.url,
    key: null,
    baseModel: null,
    timeoutMs: 120_000,
    outageMs: 10_000,
    connections: 256,
    resumes: false,
    vocabSize: work.vocabulary,
    maxPositions: 1 << 20,
    decode: () => '',
    keptVersions: 1000,
    onOutage: () => undefined,
    onWarning: () => undefined,
  });
  const lora = { rank: work.rank, alpha: 2 * work.rank, dropout: 0, targets: 'all-linear' };
  await engine.load({ lora, seed: 1, modelFolder: 'model', referenceFolder: null, critic: false } as LoadOptions);
  console.log(JSON.stringify({ about: `this project, Node ${process.version}` }));
  const stream = new RandomStream(1);
  let round = 0;
  const play = async (): Promise<void> => {
    round++;
    const prompts = Array.from({ length: work.rows }, () =>
      Array.from({ length: work.prompt }, () => 1 + stream.integer(work.vocabulary - 1)),
    );
    const rows = prompts.map((append, row) => ({ row: `${round}.${row}`, append, seed: row }));
    const answers = await engine.generate(rows, {
      max_new_tokens: work.tokens,
      max_model_len: 1 << 20,
      temperature: 1,
      top_p: 1,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      do_sample: true,
      stop: [],
      stop_token_ids: [],
    });
    await engine.release(rows.map(({ row }) => row));
    const samples = answers.map(({ ids }, row) => {
      const all = Int32Array.from([...prompts[row], ...ids]);
      return { ids: all, mask: Uint8Array.from(all, (_, at) => Number(at >= prompts[row].length)) };
    });
    const { logprobs } = await engine.score('actor', samples);
    const weighted = samples.map((sample, row) => ({
      ...sample,
      old_logprobs: logprobs[row],
      ref_logprobs: new Float32Array(sample.ids.length),
      advantages: new Float32Array(sample.ids.length).fill(row % 2 ? 0.1 : -0.1),
      weights: Float32Array.from(sample.mask),
    }));
    await engine.update(weighted, budget, loss, adam);
  };
  for await (const _ of createInterface(process.stdin)) {
    const [start, cpu] = [performance.now(), process.cpuUsage()];
    await play();
    const { user, system } = process.cpuUsage(cpu);
    console.log(JSON.stringify({ seconds: (performance.now() - start) / 1000, cpu_s: (user + system) / 1e6 }));
  }
  await engine.stop();
}

void main();
