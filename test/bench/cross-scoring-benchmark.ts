// Measures the speed-up of cross-scoring over the naive method, which passes every pair of prompt and text through the
// model. Both methods run one after the other in the engine's worker thread, on the same batch.
import { performance } from 'node:perf_hooks';
import type { Engine } from '../../extension/engine/engine';
import type { PassBudget } from '../../extension/engine/training-samples';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import type { CrossScoringSettings } from './definitions';
import { openEngine, randomIds } from './engine-benchmarks';

const budget: PassBudget = { maxTokens: 16_384, maxRows: 128 };

/** Duration of the naive method divided by that of cross-scoring, after a warm-up run of each. */
export async function crossScoring(s: CrossScoringSettings, threads: number): Promise<number> {
  const engine = await openEngine(s, threads, false);
  try {
    const stream = new RandomStream(7);
    const drawn = (length: number): Int32Array => Int32Array.from(randomIds(length, s.vocab, stream));
    const prompts = Array.from({ length: s.prompts }, () => drawn(s.prompt));
    const texts = s.lengths.map(drawn);
    const ours = (): Promise<unknown> => engine.crossScore(prompts, texts, budget, 1);
    const warm = texts.slice(0, 2);
    await engine.crossScore(prompts, warm, budget, 1);
    await naive(engine, prompts, warm);
    return (await seconds(() => naive(engine, prompts, texts))) / (await seconds(ours));
  } finally {
    await engine.stop();
  }
}

async function naive(engine: Engine, prompts: readonly Int32Array[], texts: readonly Int32Array[]): Promise<void> {
  for (const text of texts) {
    const pairs = prompts.map(prompt => ({
      ids: Int32Array.from([...prompt, ...text]),
      mask: new Uint8Array(prompt.length + text.length).fill(1, prompt.length),
    }));
    await engine.score('actor', pairs, budget, 1);
  }
}

async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}
