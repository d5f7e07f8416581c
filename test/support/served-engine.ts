// A Tinker engine with a peer in this process (tinker-peer.ts), and the arguments of its calls in tests.
import { aggregationWeights } from '../../extension/algorithms/loss-aggregation';
import type { LoadOptions } from '../../extension/engine/load-options';
import type { PolicyLossOptions } from '../../extension/engine/loss-options';
import { RandomStream } from '../../extension/engine/sampling/random-stream';
import type { WeightedSample } from '../../extension/engine/training-samples';
import { TinkerEngine, type TinkerSettings } from '../../extension/models/tinker/tinker-engine';
import type { BigramModel } from './bigram-model';
import { TinkerPeer, type PeerOptions } from './tinker-peer';

export const vocabSize = 16;
export const load = {
  lora: { rank: 8, alpha: 16, dropout: 0, targets: 'all-linear' },
  referenceFolder: null,
  seed: 3,
  critic: false,
} as LoadOptions;
export const sampling = {
  max_new_tokens: 6,
  stop_token_ids: [15],
  stop: [],
  max_model_len: 64,
  temperature: 1,
  top_p: 1,
  top_k: -1,
  min_p: 0,
  repetition_penalty: 1,
  do_sample: true,
};
export const budget = { maxTokens: 1e6, maxRows: 1e6 };
/** Adam whose step is minus the gradient: with so large an ε its denominator is constant. */
export const plainStep = { lr: 1e6, betas: [0, 0] as [number, number], eps: 1e6, weight_decay: 0, grad_clip: 1 };

const open: { engines: TinkerEngine[]; peers: TinkerPeer[] } = { engines: [], peers: [] };

/** Ends all engines and peers that `started` has started. */
export async function endAll(): Promise<void> {
  for (const peer of open.peers) peer.fault = () => undefined;
  await Promise.all(open.engines.splice(0).map(engine => engine.stop()));
  await Promise.all(open.peers.splice(0).map(peer => peer.stop()));
}

/** Ends a peer before its engine. */
export async function endPeer(peer: TinkerPeer): Promise<void> {
  open.peers.splice(open.peers.indexOf(peer), 1);
  await peer.stop();
}

/** Applies a fault to the first `times` requests with this path. */
export function faulty(peer: TinkerPeer, path: string, fault: ReturnType<TinkerPeer['fault']>, times = 1): void {
  let left = times;
  peer.fault = asked => (asked === path && left-- > 0 ? fault : undefined);
}

/** Starts a peer, and an engine that uses it. */
export async function started(options: Partial<PeerOptions> = {}, settings: Partial<TinkerSettings> = {}) {
  const peer = await TinkerPeer.start({ vocabSize, ...options });
  open.peers.push(peer);
  const outages: (string | null)[] = [];
  const engine = new TinkerEngine({
    url: peer.url,
    key: null,
    timeoutMs: 5000,
    outageMs: 2000,
    connections: 32,
    pauseMs: { first: 5, longest: 20 },
    baseModel: null,
    resumes: false,
    keptVersions: 2,
    onWarning: () => undefined,
    vocabSize,
    maxPositions: 64,
    decode: ids => ids.map(id => String.fromCharCode(97 + id)).join(''),
    onOutage: reason => void outages.push(reason),
    ...settings,
  });
  open.engines.push(engine);
  return { peer, engine, outages };
}

/** The peer's model that is trained: the newest one. */
export const actorOf = (peer: TinkerPeer): BigramModel => [...peer.models.values()].at(-1)!;

/** Options of the policy loss. */
export const loss = (more: Partial<PolicyLossOptions> = {}): PolicyLossOptions => ({
  clip_ratio_low: 0.2,
  clip_ratio_high: 0.28,
  clip_ratio_c: 3,
  entropy_coeff: 0,
  use_kl_loss: false,
  kl_loss_coef: 0.1,
  kl_loss_type: 'k1',
  loss_agg_mode: 'token-mean',
  temperature: 1,
  ...more,
});

/** Samples of different lengths with gaps in their masks; the second has none. */
export function samplesOf(mode: PolicyLossOptions['loss_agg_mode']): WeightedSample[] {
  const stream = new RandomStream(5);
  const masks = [
    [0, 0, 1, 1, 0, 1, 1],
    [0, 0, 0],
    [0, 1, 1, 1],
  ].map(bits => Uint8Array.from(bits));
  const weights = aggregationWeights(
    masks.map(mask => mask.reduce((sum, bit) => sum + bit, 0)),
    mode,
    7,
  );
  return masks.map((mask, row) => {
    const numbers = (from: number, to: number) => Float32Array.from(mask, () => from + (to - from) * stream.uniform());
    return {
      ids: Int32Array.from(mask, () => stream.integer(vocabSize)),
      mask,
      old_logprobs: numbers(-4, -2),
      ref_logprobs: numbers(-4, -2),
      advantages: numbers(-1, 1),
      weights: new Float32Array(mask.length).fill(weights[row]),
    };
  });
}
