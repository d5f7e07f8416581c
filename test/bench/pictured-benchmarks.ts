// Our side of the benchmarks with pictures. Before a run, the pictures get new names, so that neither their features nor
// the tokens of a prompt are known from an earlier run.
import { copyFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { untrained } from '../../extension/engine/load-options';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import { startEngine } from '../../extension/engine/remote-engine';
import type { RemoteEngine } from '../../extension/engine/remote-engine';
import type { ShownPicture, WeightedSample } from '../../extension/engine/training-samples';
import { readTokenizer } from '../../extension/models/weights/model-folder';
import { mapEncoder } from '../../extension/models/vision/mapped-encoder';
import { decodePicture } from '../../extension/models/vision/picture-decoder';
import { PictureEncoder } from '../../extension/models/vision/picture-encoder';
import { PictureFeatures } from '../../extension/models/vision/picture-features';
import { readProcessorOptions } from '../../extension/models/vision/processor-folder';
import type { Workload } from './benchmark';
import { budget, groupAdvantages, loss, optimizer, sampling, worker } from './engine-benchmarks';
import type { EncodingSettings, FirstTokenSettings, PicturedIterationSettings } from './pictured-definitions';
import { chatOf, chatText, picturedWorkload } from './pictured-workload';
import type { PicturedWorkload, Shown } from './pictured-workload';
import { cacheFolder } from './random-model';

const maxPositions = 1024;
/** Maximum number of values of an evidence. */
const evidenceSize = 4096;

/** Returns evenly distributed values. */
const thinned = (values: ArrayLike<number>): number[] => {
  const step = Math.ceil(values.length / evidenceSize);
  return Array.from({ length: Math.floor((values.length - 1) / step) + 1 }, (_, i) => values[i * step]);
};

/** Copies of the pictures under names that were never used before. */
class FreshNames {
  private readonly folder: string;
  private readonly prepared: Map<string, string>[] = [];
  private runs = 0;

  constructor(private readonly source: string) {
    this.folder = join(source, `copies-${process.pid}`);
    mkdirSync(this.folder, { recursive: true });
  }

  get path(): string {
    return this.folder;
  }

  /** Makes the copies for the next calls of `next` with these names, so that the copying is not measured. */
  prepare(names: readonly string[], times: number): void {
    for (let i = 0; i < times; i++) this.prepared.push(this.copied(names));
  }

  /** Returns the new names of pictures by their old names. */
  next(names: readonly string[]): Map<string, string> {
    return this.prepared.shift() ?? this.copied(names);
  }

  private copied(names: readonly string[]): Map<string, string> {
    this.runs++;
    return new Map(
      names.map(name => {
        const fresh = `${this.runs}-${name}`;
        copyFileSync(join(this.source, name), join(this.folder, fresh));
        return [name, fresh];
      }),
    );
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Encodes pictures with the product's encoder. */
export async function encoding(s: EncodingSettings, threads: number): Promise<Workload> {
  const { pictures } = await picturedWorkload(s);
  const fresh = new FreshNames(s.folder);
  const { config, network } = await mapEncoder(s.model_folder);
  const encoder = new PictureEncoder(network, undefined, { threads });
  const processor = readProcessorOptions(s.model_folder, config.encoder);
  const features = new PictureFeatures(fresh.path, config, processor, encoder, undefined, 0);
  const { width, height } = await decodePicture(readFileSync(join(s.folder, pictures[0])));
  const count = readTokenizer(s.model_folder).pictures!.tokens({ width, height });
  const ids = Int32Array.from({ length: count * pictures.length }, () => config.imageToken);
  const encode = async (): Promise<Float32Array> => {
    const names = [...fresh.next(pictures).values()];
    const shows = names.map((picture, i): ShownPicture => ({ at: i * count, picture }));
    const { images } = await features.ofSamples([{ ids, shows }]);
    return images!.values.data as Float32Array;
  };
  return {
    prepare: async () => fresh.prepare(pictures, s.repeats),
    run: async () => {
      for (let i = 0; i < s.repeats; i++) await encode();
      return s.repeats * pictures.length;
    },
    evidence: async () => [thinned(await encode())],
    release: async () => {
      await encoder.release();
      fresh.remove();
    },
  };
}

async function openEngine(s: EncodingSettings, threads: number, folder: string): Promise<RemoteEngine> {
  const engine = startEngine(worker);
  await engine.load({
    ...untrained, // no adapter, reference policy or critic
    ...{ modelFolder: s.model_folder, adapterFolder: null, device: 'cpu', threads, maxPositions, cacheFolder },
    pictures: { folder },
  });
  return engine;
}

/** Reads pictures, renders and encodes a chat that shows them, and generates the first token. */
export async function firstToken(s: FirstTokenSettings, threads: number): Promise<Workload> {
  const { pictures } = await picturedWorkload(s);
  const fresh = new FreshNames(s.folder);
  const engine = await openEngine(s, threads, fresh.path);
  const tokenizer = readTokenizer(s.model_folder);
  const options = { ...sampling(1), do_sample: false, max_model_len: maxPositions };
  const first = async () => {
    const shown = [];
    for (const name of fresh.next(pictures).values()) {
      const { width, height } = await decodePicture(readFileSync(join(fresh.path, name)));
      shown.push({ name, width, height });
    }
    const { ids: append, shows } = tokenizer.shownPrompt(chatOf(chatText(shown)), '');
    const [{ ids, logprobs }] = await engine.generate([{ row: 'chat', append, shows, seed: 1 }], options);
    await engine.release(['chat']);
    return { append, ids, logprobs };
  };
  return {
    prepare: async () => fresh.prepare(pictures, s.repeats),
    run: async () => {
      for (let i = 0; i < s.repeats; i++) await first();
      return s.repeats;
    },
    evidence: async () => {
      const { append, logprobs } = await first();
      return [[...append], [...logprobs]];
    },
    release: async () => {
      await engine.stop();
      fresh.remove();
    },
  };
}

/** Rollouts whose prompts and observations show pictures, GRPO advantages, and one optimizer step per mini-batch. */
export async function picturedIteration(s: PicturedIterationSettings, threads: number): Promise<Workload> {
  const workload = await picturedWorkload(s);
  const fresh = new FreshNames(s.folder);
  const engine = await openEngine(s, threads, fresh.path);
  const stream = new RandomStream(4);
  const update = async (samples: readonly Episode[], advantages: readonly number[], lr: number) => {
    const share = 1 / (samples.length * s.turns * s.sampled);
    const weighted = samples.map((sample, i): WeightedSample => ({
      ...sample,
      ref_logprobs: new Float32Array(sample.ids.length),
      advantages: new Float32Array(sample.ids.length).fill(advantages[i]),
      weights: new Float32Array(sample.ids.length).fill(share),
    }));
    return engine.update(weighted, budget, loss, { ...optimizer, lr }, 0);
  };
  const named = (): PicturedWorkload => renamed(workload, fresh);
  return {
    prepare: async () => fresh.prepare(shownBy(workload), s.repeats),
    run: async () => {
      for (let i = 0; i < s.repeats; i++) {
        const given = named();
        const samples = await rollOut(engine, s, given, stream);
        const advantages = groupAdvantages(s, stream);
        const order = samples.map((_, row) => row).sort(() => stream.uniform() - 0.5);
        for (let from = 0; from < order.length; from += s.mini_batch) {
          const rows = order.slice(from, from + s.mini_batch);
          await update(
            rows.map(row => samples[row]),
            rows.map(row => advantages[row]),
            optimizer.lr,
          );
        }
      }
      return s.repeats;
    },
    evidence: async () => {
      // Replies of consecutive ids, scored and trained on with a learning rate of 0.
      const given = named();
      const episodes = assembled(s, given, () => Array.from({ length: s.sampled }, (_, i) => ({ id: 1 + i })));
      const { logprobs } = await engine.score('actor', episodes, budget, 1);
      const scored = episodes.map((episode, row) => ({ ...episode, old_logprobs: logprobs[row] }));
      const { grad_norm } = await update(
        scored,
        scored.map((_, row) => (row % 3) - 1),
        0,
      );
      return [scored.flatMap(({ mask, old_logprobs }) => [...old_logprobs].filter((_, t) => mask[t])), [grad_norm]];
    },
    release: async () => {
      await engine.stop();
      fresh.remove();
    },
  };
}

type Episode = Pick<WeightedSample, 'ids' | 'mask' | 'shows' | 'old_logprobs'>;

/** Returns the names of the pictures of prompts and observations. */
const shownBy = ({ prompts, observations }: PicturedWorkload): string[] =>
  [...prompts, ...observations.flat()].map(({ picture }) => picture);

function renamed(workload: PicturedWorkload, fresh: FreshNames): PicturedWorkload {
  const names = fresh.next(shownBy(workload));
  const rename = (shown: Shown): Shown => ({ ...shown, picture: names.get(shown.picture)! });
  return {
    ...workload,
    prompts: workload.prompts.map(rename),
    observations: workload.observations.map(turns => turns.map(rename)),
  };
}

/** Joins prompts, replies and observations; `reply` returns the ids of a turn, with their log-probs if they are known. */
function assembled(
  s: PicturedIterationSettings,
  { prompts, observations }: PicturedWorkload,
  reply: (row: number, turn: number) => { id: number; logprob?: number }[],
): Episode[] {
  return observations.map((later, row) => {
    const ids: number[] = [];
    const mask: number[] = [];
    const old: number[] = [];
    const shows: ShownPicture[] = [];
    [prompts[Math.floor(row / s.group_size)], ...later].forEach((shown, turn) => {
      shows.push({ at: ids.length + shown.at, picture: shown.picture });
      for (const id of shown.ids) {
        ids.push(id);
        mask.push(0);
        old.push(0);
      }
      for (const { id, logprob = 0 } of reply(row, turn)) {
        ids.push(id);
        mask.push(1);
        old.push(logprob);
      }
    });
    return { ids: Int32Array.from(ids), mask: Uint8Array.from(mask), shows, old_logprobs: Float32Array.from(old) };
  });
}

async function rollOut(
  engine: RemoteEngine,
  s: PicturedIterationSettings,
  given: PicturedWorkload,
  stream: RandomStream,
): Promise<Episode[]> {
  const replies: { id: number; logprob: number }[][][] = given.observations.map(() => []);
  const options = { ...sampling(s.sampled), max_model_len: maxPositions };
  const rows = given.observations.map((_, row) => `${row}`);
  for (let turn = 0; turn < s.turns; turn++) {
    const generated = await engine.generate(
      rows.map((row, i) => {
        const { ids, at, picture } =
          turn === 0 ? given.prompts[Math.floor(i / s.group_size)] : given.observations[i][turn - 1];
        return { row, append: ids, shows: [{ at, picture }], seed: stream.integer(2 ** 31) };
      }),
      options,
    );
    generated.forEach(({ ids, logprobs }, i) => replies[i].push(ids.map((id, t) => ({ id, logprob: logprobs[t] }))));
  }
  await engine.release(rows);
  return assembled(s, given, (row, turn) => replies[row][turn]);
}
