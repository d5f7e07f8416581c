// Rows of a memory plan, by phase. Each row has a name, a number of bytes and the formula for this number as text. The
// bytes of weights, gradients and optimizer follow from the parameter count. The bytes of keys and values follow from
// the number and length of episodes. pass-memory.ts computes the bytes of activations.
import { appendAll } from '../../common/lists';
import { chunkSize } from '../../engine/optimizer/adamw';
import { blockSize } from '../../engine/optimizer/byte-moments';
import type { MomentFormat } from '../../engine/load-options';
import { headChunks } from '../graphs/batch-feeds';
import { continuedTokens } from '../cross-scoring';
import { prefixGraph, suffixGraph } from '../graphs/cross-graphs';
import { criticSpecs, valueHeadSpec } from '../decoder/critic';
import { elements, parameterSpecs } from '../decoder/decoder-config';
import type { ParameterSpec } from '../decoder/decoder-config';
import type { FileTensor } from '../decoder/decoder-parameters';
import { decodedRows, prefillTokens } from '../generation/generator';
import { pieceTokens } from '../generation/host-cache';
import { laidOutBytes } from '../load-models';
import { undoParameters } from '../engine-undo';
import { loraSpecs } from '../adapters/lora';
import { encoderSpecs, featureWidth } from '../vision/encoder-config';
import { keptFeatureBytes } from '../vision/picture-features';
import { encoderGradientBytes, encodingBytes, joinedBytes, keptBytes } from './encoder-memory';
import { isOfDecoder } from '../vision/stored-names';
import { PassMemory, isLinear, sizesOf } from './pass-memory';
import type { PlanInput } from './plan-input';
import { measured } from './measured-memory';
import type { PassKind } from './pass-memory';

const momentBytes: Record<MomentFormat, number> = { float32: 8, int8: 2 + 8 / blockSize };

/**
 * Phases of a run, in the order of a step. The memory of earlier phases is included in each phase, because
 * onnxruntime's memory pools (arenas) never shrink.
 */
export const phases = [
  'loading',
  'rollout',
  'diagnosis',
  'log-probs',
  'critic update',
  'policy update',
  'checkpoint',
] as const;
export type Phase = (typeof phases)[number];

export interface PlanRow {
  what: string;
  bytes: number;
  /** Formula of `bytes` as text. */
  how: string;
  /** First phase in which the memory is in use; it stays in use until the end. */
  phase: Phase;
}

/** Computes the rows of a run's memory plan. */
export class MemoryRows {
  private readonly passes: PassMemory;

  constructor(private readonly input: PlanInput) {
    this.passes = new PassMemory(input);
  }

  weightRows(): PlanRow[] {
    const { decoder: c, lora, stored, critic, reference, baseQuantization, rolloutQuantization } = this.input;
    const all = count(parameterSpecs(c));
    const width = bytesOf[stored];
    const mapped = `${millions(all)} parameters × ${width} bytes, mapped from the model's files`;
    const rows = [
      row('loading', 'process', measured.process, 'Node and onnxruntime, with code and sessions, measured'),
    ];
    const { environments } = this.input;
    rows.push(
      row(
        'loading',
        'environments',
        environments * measured.environments,
        `${environments} × ${measured.environments / 2 ** 20} MiB per process, measured without the environment's own data`,
      ),
    );
    if (lora) {
      if (baseQuantization === 'none') rows.push(row('loading', 'base', all * width, mapped));
      if (baseQuantization === 'int8' || rolloutQuantization === 'int8')
        rows.push(row('loading', '8-bit base', all, `${millions(all)} parameters × 1 byte, mapped from the cache`));
      const trained = this.trained();
      rows.push(row('loading', 'adapters', trained * 4, `${millions(trained)} trained parameters × 4 bytes`));
      const linear = count(parameterSpecs(c).filter(({ name }) => isLinear(name, c)));
      const each = rolloutQuantization === 'none' ? 4 : 1;
      const how = `${millions(linear)} parameters of linear layers × ${each} byte${each > 1 ? 's' : ''}`;
      rows.push(row('rollout', 'base prepacked for rollouts', linear * each, how));
    } else {
      const trained = this.trained();
      rows.push(row('loading', 'weights', trained * 4, `${millions(trained)} parameters × 4 bytes`));
      if (reference) rows.push(row('loading', 'reference', all * width, mapped));
    }
    const { teacher, pictures } = this.input;
    const own = teacher ? count(parameterSpecs(teacher.decoder)) : 0;
    const frozen = lora || reference ? Math.max(all, own) : own;
    if (frozen > 0) {
      const bytes = Math.min(measured.reading, frozen * 8);
      rows.push(
        row('loading', 'check of frozen weights', bytes, 'reading all frozen weights once, in parts; measured'),
      );
    }
    if (teacher) {
      const bytes = bytesOf[teacher.stored];
      const how = `${millions(own)} parameters × ${bytes} bytes, mapped from the teacher's files`;
      rows.push(row('loading', 'teacher', own * bytes, how));
    }
    if (pictures) {
      const own = count(encoderSpecs(pictures.encoder));
      const bytes = bytesOf[pictures.stored];
      const how = `${millions(own)} parameters × ${bytes} bytes, mapped from the model's files`;
      rows.push(row('loading', 'vision encoder', own * bytes, how));
    }
    if (critic) {
      const own = this.criticTrained();
      rows.push(row('loading', 'critic', own * 4, `${millions(own)} parameters of the critic × 4 bytes`));
    }
    return rows;
  }

  rolloutRows(): PlanRow[] {
    const { decoder: c, longest, rollouts } = this.input;
    const together = Math.min(rollouts, decodedRows);
    const episodes = this.input.environments > 0 ? measured.episodes : 0;
    const perToken = 2 * c.layers * c.kvHeads * c.headSize * 4;
    return [
      row('rollout', 'episodes', episodes, 'episodes, packed arrays and uncollected garbage, measured'),
      row(
        'rollout',
        'keys and values',
        (rollouts + together) * longest * perToken,
        `(${rollouts} episodes + ${together} in the batch) × ${longest} tokens × ${perToken} bytes`,
      ),
      row(
        'rollout',
        'generation',
        Math.max(this.passes.decoding(together), this.passes.prefilling()),
        `${measured.arena} × the larger of two memory needs: a decoding step with ${together} rows; a prefill of up to ${prefillTokens} tokens in chunks of ${pieceTokens}`,
      ),
      this.layOutRow(),
      ...this.pictureRows(),
    ];
  }

  /** Returns the rows for encoding pictures and for their features; none if no pictures are shown. */
  private pictureRows(): PlanRow[] {
    const { pictures, rollouts } = this.input;
    if (!pictures) return [];
    const { encoder, grids, tokens, perSequence } = pictures;
    const patches = grids.reduce((sum, { rows, columns }) => sum + rows * columns, 0);
    const width = featureWidth(encoder);
    return [
      row(
        'rollout',
        'encoder activations',
        encodingBytes(pictures),
        `${measured.arena} × peak memory of the encoder for a picture of ${patches} patches (${tokens} image tokens), and the patches`,
      ),
      row(
        'rollout',
        'kept image features',
        keptBytes(pictures),
        `at most ${keptFeatureBytes / 2 ** 20} MiB, for ${pictures.pictures} pictures × ${tokens} image tokens × ${width} numbers × 4 bytes`,
      ),
      row(
        'rollout',
        'image features of a call',
        joinedBytes(pictures, rollouts),
        `2 × ${rollouts} episodes × ${perSequence} image tokens × ${width} numbers × 4 bytes`,
      ),
    ];
  }

  /**
   * Returns the row for the weights that are copied as constants into the session for rollouts (load-models.ts). While
   * the session is created, the session's model file and the buffer from which onnxruntime reads this file also need
   * memory.
   */
  private layOutRow(): PlanRow {
    const { decoder, lora, trains } = this.input;
    const bytes = 4 * count(parameterSpecs(decoder));
    const copies = trains ? 1 : 3; // creating the session needs 3 copies; later phases of training need more
    return row(
      'rollout',
      'weights prepacked for rollouts',
      lora || bytes > laidOutBytes ? 0 : copies * bytes,
      `${copies} × ${millions(bytes / 4)} parameters × 4 bytes`,
    );
  }

  trainingRows({ updateTokens, criticTokens }: Pick<PlanInput, 'updateTokens' | 'criticTokens'>): PlanRow[] {
    const { scoreTokens, referenceTokens, reference, critic, moments } = this.input;
    const how = (tokens: number, whose: string): string =>
      `${measured.arena} × peak memory of ${whose} for ${tokens} tokens, the larger of passes with and without shared prefixes`;
    const pass = (phase: Phase, what: string, kind: PassKind, tokens: number, whose: string): PlanRow =>
      row(phase, what, tokens > 0 ? this.passes.arenas(kind, tokens) : 0, how(tokens, whose));
    const rows = this.diagnosisRows();
    rows.push(pass('log-probs', 'old log-probs', 'score', scoreTokens, "the policy's graph without gradient"));
    if (reference)
      rows.push(pass('log-probs', 'reference log-probs', 'reference', referenceTokens, "the reference's graph"));
    const { teacher } = this.input;
    if (teacher) {
      const passes = new PassMemory({ ...this.input, ...teacher, lora: null, baseQuantization: 'none' });
      const what = how(referenceTokens, "the teacher's graph");
      rows.push(row('log-probs', 'log-probs of the teacher', passes.arenas('reference', referenceTokens), what));
    }
    if (critic) {
      const values = pass('log-probs', 'values', 'values', criticTokens, "the critic's graph without gradient");
      const update = Math.max(0, this.passes.criticArenas(criticTokens) - values.bytes);
      rows.push(
        values,
        row(
          'critic update',
          'critic activations',
          update,
          `${how(criticTokens, "the critic's graph with gradient")}; for large passes, only the excess over the memory for computing values is counted`,
        ),
      );
      appendAll(rows, optimizerRows('critic update', 'critic ', this.criticTrained(), moments.critic));
    }
    return [
      ...rows,
      pass('policy update', 'activations and logits', 'update', updateTokens, "the policy's graph with gradient"),
      ...this.encoderGradientRows(updateTokens),
      ...optimizerRows('policy update', '', this.trained(), moments.actor),
      this.undoRow(),
      ...this.checkpointRows(),
    ];
  }

  /**
   * Returns the rows for a trained vision encoder: its backward pass, the gradient of the features, and what the reference
   * policy and the critic see, which another session of the first weights encodes; none if the encoder is frozen.
   */
  private encoderGradientRows(updateTokens: number): PlanRow[] {
    const { pictures, trainedEncoder, longest, reference, critic } = this.input;
    if (!pictures || !trainedEncoder) return [];
    const { tokens, perSequence } = pictures;
    const sequences = Math.max(1, Math.floor(updateTokens / longest));
    const first = row(
      'log-probs',
      'encoder activations of the first weights',
      encodingBytes(pictures) + keptBytes(pictures),
      'encoder activations and kept image features of the reference policy and the critic',
    );
    return [
      ...(reference || critic ? [first] : []),
      row(
        'policy update',
        'encoder activations with gradient',
        encoderGradientBytes(pictures, this.input),
        `${measured.arena} × peak memory of the encoder's forward and backward pass for a picture of ${tokens} image tokens, without its gradients`,
      ),
      row(
        'policy update',
        'gradient of image features',
        joinedBytes(pictures, sequences),
        `2 × ${sequences} episodes × ${perSequence} image tokens × ${featureWidth(pictures.encoder)} numbers × 4 bytes`,
      ),
    ];
  }

  /**
   * Returns the rows for the copies of weights and moments that are made for a checkpoint
   * (trainer/run/training-checkpoints.ts). Returns no rows for an engine without a run (`environments` is 0), which
   * writes no checkpoints.
   */
  private checkpointRows(): PlanRow[] {
    const { critic, moments, environments } = this.input;
    if (environments === 0) return [];
    const own = this.trained();
    const rows = [
      row(
        'checkpoint',
        "checkpoint's copies",
        own * (4 + 4 + momentBytes[moments.actor]),
        `${millions(own)} trained parameters × (weight, copy of the weight for the file, and moments of the optimizer)`,
      ),
    ];
    if (critic) {
      const critics = this.criticTrained();
      rows.push(
        row(
          'checkpoint',
          "checkpoint's copies (critic)",
          critics * (4 + momentBytes[moments.critic]),
          `${millions(critics)} trained parameters × (weight and moments of the optimizer)`,
        ),
      );
    }
    return rows;
  }

  /**
   * Returns the row for the copy of weights and moments that is made so that a stopped training step can be undone
   * (engine-undo.ts).
   */
  private undoRow(): PlanRow {
    const { critic, moments } = this.input;
    const [own, critics] = [this.trained(), critic ? this.criticTrained() : 0];
    const bytes = own * (4 + momentBytes[moments.actor]) + critics * (4 + momentBytes[moments.critic]);
    const copied = own + critics <= undoParameters ? bytes : 0;
    return row(
      'policy update',
      'copy for undoing a stopped step',
      copied,
      `${millions(own + critics)} trained parameters × (weight and moments of the optimizer)`,
    );
  }

  /**
   * Returns the rows for the collapse diagnosis, which scores texts after prompts. The first row is for a pass over
   * prompts, with the keys and values that this pass returns. The second row is for a pass that scores texts after the
   * longest prompt.
   */
  private diagnosisRows(): PlanRow[] {
    const { decoder: c, longest, diagnosisTokens: tokens, pictures } = this.input;
    if (tokens === 0) return [];
    const prompts = Math.max(1, Math.floor(tokens / longest));
    const t = Math.min(longest, tokens);
    const read = this.passes.graph('prefixes', () =>
      prefixGraph(this.passes.actor, { lowering: 'cpu', shared: false, ...(pictures && { pictures: 'shown' }) }),
    )(sizesOf(c, { tokens: prompts * t, t, b: prompts, r: prompts }));
    const texts = Math.min(tokens, continuedTokens);
    const chunks = headChunks(texts, c.vocabSize);
    const own = Math.min(longest, texts);
    const continued = this.passes.graph(`suffixes ${chunks}`, () =>
      suffixGraph(this.passes.actor, { lowering: 'cpu', chunks }),
    )(
      sizesOf(c, {
        tokens: texts,
        n: texts,
        t: own,
        m: Math.ceil(texts / own),
        u: longest,
        'tokens+1': texts + 1,
        part: texts / chunks,
      }),
    );
    return [
      row(
        'diagnosis',
        'prompts of the collapse diagnosis',
        measured.arena * read.peak + read.outputs,
        `${measured.arena} × memory of a pass over prompts of ${prompts * t} tokens, plus the keys and values of these tokens`,
      ),
      row(
        'diagnosis',
        'texts of the collapse diagnosis',
        measured.arena * continued.peak,
        `${measured.arena} × memory of a pass over ${texts} tokens of texts after a prompt of ${longest} tokens`,
      ),
    ];
  }

  private trained(): number {
    const { decoder, lora, trainedEncoder: encoder } = this.input;
    if (lora) return count(loraSpecs(decoder, lora, encoder));
    return count([...parameterSpecs(decoder), ...(encoder ? encoderSpecs(encoder) : [])]);
  }

  private criticTrained(): number {
    const { decoder, lora, trainedEncoder: encoder } = this.input;
    if (!lora) return count(criticSpecs(decoder));
    const own = loraSpecs(decoder, lora, encoder).filter(({ name }) => isOfDecoder(name));
    return count([...own, valueHeadSpec(decoder)]);
  }
}

const row = (phase: Phase, what: string, bytes: number, how: string): PlanRow => ({
  what,
  bytes: Math.ceil(bytes),
  how,
  phase,
});

/**
 * Returns the plan rows of gradients and optimizer. `trained` is the number of trained parameters. The name of each row
 * starts with `whose`.
 */
function optimizerRows(phase: Phase, whose: string, trained: number, moments: MomentFormat): PlanRow[] {
  const m = millions(trained);
  const chunk = Math.min(trained, chunkSize);
  const each = momentBytes[moments];
  return [
    // The gradients of two passes are counted, because Node's garbage collection frees the gradient of a pass only
    // after the next pass has allocated its own.
    row(
      phase,
      `${whose}gradients`,
      trained * 12,
      `${m} trained parameters × (4 bytes of the sum + 4 of the current pass + 4 of the previous pass)`,
    ),
    row(
      phase,
      `${whose}optimizer`,
      trained * each,
      `${m} trained parameters × ${each} bytes for the optimizer's two moments`,
    ),
    row(
      phase,
      `${whose}optimizer step`,
      chunk * measured.step,
      `${millions(chunk)} parameters at a time × ${measured.step} bytes`,
    ),
  ];
}

const bytesOf: Record<FileTensor['dtype'], number> = { F32: 4, F16: 2, BF16: 2 };
const count = (specs: readonly ParameterSpec[]): number => specs.reduce((sum, { dims }) => sum + elements(dims), 0);
const millions = (n: number): string => `${(n / 1e6).toLocaleString('en', { maximumSignificantDigits: 3 })} M`;
