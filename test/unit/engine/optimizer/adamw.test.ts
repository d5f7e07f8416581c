// AdamW over several steps against its definition in double precision, also in chunks; clipping; a non-finite gradient
// changes nothing. 8-bit moments stay close to float32's step by step and reach the same final loss.
import { describe, expect, it } from 'vitest';
import { AdamW, chunkSize } from '../../../../extension/engine/optimizer/adamw';
import { blockSize } from '../../../../extension/engine/optimizer/byte-moments';
import type { MomentFormat } from '../../../../extension/engine/load-options';
import type { OptimizerOptions } from '../../../../extension/engine/loss-options';
import { RandomStream } from '../../../../extension/engine/sampling/random-stream';

const options: OptimizerOptions = { lr: 0.02, betas: [0.9, 0.99], eps: 1e-6, weight_decay: 0.1, grad_clip: 1 };
const vector = (stream: RandomStream, n: number, size: number): Float32Array =>
  Float32Array.from({ length: n }, () => size * stream.normal());

const formats: MomentFormat[] = ['float32', 'int8'];

/** Loshchilov & Hutter, algorithm 2, in PyTorch's order. */
function reference(
  p: Float64Array,
  m: Float64Array,
  v: Float64Array,
  g: Float32Array,
  t: number,
  o: OptimizerOptions,
): number {
  const norm = Math.sqrt(g.reduce((sum, x) => sum + x * x, 0));
  const shrink = Math.min(1, o.grad_clip / (norm + 1e-6));
  g.forEach((raw, i) => {
    const x = raw * shrink;
    m[i] = o.betas[0] * m[i] + (1 - o.betas[0]) * x;
    v[i] = o.betas[1] * v[i] + (1 - o.betas[1]) * x * x;
    const [mHat, vHat] = [m[i] / (1 - o.betas[0] ** t), v[i] / (1 - o.betas[1] ** t)];
    p[i] -= o.lr * o.weight_decay * p[i] + (o.lr * mHat) / (Math.sqrt(vHat) + o.eps);
  });
  return norm;
}

describe('AdamW', () => {
  it.each([
    ['within the norm', 0.01],
    ['beyond it, clipped', 10],
  ])('equals its definition over ten steps, gradients %s', async (_, size) => {
    const stream = new RandomStream(1);
    const n = 40;
    const parameters = vector(stream, n, 1);
    const [p, m, v] = [Float64Array.from(parameters), new Float64Array(n), new Float64Array(n)];
    const adamw = await AdamW.create(n, { threads: 1 });
    for (let t = 1; t <= 10; t++) {
      const gradient = vector(stream, n, size);
      const at = { ...options, lr: options.lr / t };
      const norm = reference(p, m, v, gradient, t, at);
      const step = await adamw.step(parameters, gradient, at);
      expect(step.applied).toBe(true);
      expect(step.norm / norm).toBeCloseTo(1, 5);
    }
    expect(adamw.state.step).toBe(10);
    for (let i = 0; i < n; i++) {
      expect(parameters[i]).toBeCloseTo(p[i], 5);
      expect(adamw.state.m[i]).toBeCloseTo(m[i], 6);
      expect(adamw.state.v[i]).toBeCloseTo(v[i], 6);
    }
  });

  it.each(formats)('gives the same result in chunks as in one piece, moments in %s', async format => {
    const [n, cut] = [chunkSize + blockSize + 16, chunkSize];
    const stream = new RandomStream(3);
    const parameters = vector(stream, n, 1);
    // Runs the second chunk alone; its blocks begin at a chunk boundary. Nothing is clipped, so the norm does not
    // matter.
    const part = parameters.slice(cut);
    const [whole, alone] = [
      await AdamW.create(n, { threads: 1 }, format),
      await AdamW.create(n - cut, { threads: 1 }, format),
    ];
    for (let t = 1; t <= 2; t++) {
      const gradient = vector(stream, n, 0.001);
      const unclipped = { ...options, grad_clip: 1e9 };
      const { norm } = await whole.step(parameters, gradient, unclipped);
      expect(norm / Math.sqrt(gradient.reduce((sum, x) => sum + x * x, 0))).toBeCloseTo(1, 5);
      await alone.step(part, gradient.slice(cut), unclipped);
    }
    expect(parameters.subarray(cut)).toEqual(part);
    expect(whole.state.m.subarray(cut)).toEqual(alone.state.m);
    expect(whole.state.v.subarray(cut)).toEqual(alone.state.v);
  });

  it.each([NaN, Infinity, 1e30].flatMap(bad => formats.map(format => [bad, format] as const)))(
    'takes no step on a gradient that holds %f, and reports it, moments in %s',
    async (bad, format) => {
      const adamw = await AdamW.create(3, { threads: 1 }, format);
      const parameters = Float32Array.of(1, 2, 3);
      await adamw.step(parameters, Float32Array.of(0.1, 0.2, 0.3), options);
      const before = structuredClone({ parameters, state: adamw.state });
      const { norm, applied } = await adamw.step(parameters, Float32Array.of(0.1, bad, 0.3), options);
      expect(applied).toBe(false);
      expect(Number.isFinite(norm)).toBe(false);
      expect({ parameters, state: adamw.state }).toEqual(before);
    },
  );

  it('continues from a restored state as if it had not been stopped', async () => {
    const stream = new RandomStream(2);
    const gradients = Array.from({ length: 4 }, () => vector(stream, 5, 1));
    const whole = await AdamW.create(5, { threads: 1 });
    const first = vector(stream, 5, 1);
    const p = first.slice();
    for (const gradient of gradients) await whole.step(p, gradient, options);
    const [before, after] = [await AdamW.create(5, { threads: 1 }), await AdamW.create(5, { threads: 1 })];
    const q = first.slice();
    for (const gradient of gradients.slice(0, 2)) await before.step(q, gradient, options);
    after.state.m.set(before.state.m);
    after.state.v.set(before.state.v);
    after.state.step = before.state.step;
    for (const gradient of gradients.slice(2)) await after.step(q, gradient, options);
    expect(q).toEqual(p);
  });
});

describe('AdamW with 8-bit moments', () => {
  it('equals float32 in the first step, and stays close to it later', async () => {
    const stream = new RandomStream(4);
    const n = 3 * blockSize + 40; // the last block is incomplete
    const initial = vector(stream, n, 1);
    const [p, q] = [initial.slice(), initial.slice()];
    const [float, bytes] = [await AdamW.create(n, { threads: 1 }), await AdamW.create(n, { threads: 1 }, 'int8')];
    const still = { ...options, weight_decay: 0 };
    for (let t = 1; t <= 20; t++) {
      const gradient = vector(stream, n, 0.01);
      const before = { p: p.slice(), q: q.slice() };
      await float.step(p, gradient, still);
      await bytes.step(q, gradient, still);
      // A step uses the moments before rounding: the first step equals float32's.
      const difference = Math.hypot(...q.map((x, i) => x - before.q[i] - (p[i] - before.p[i])));
      const size = Math.hypot(...p.map((x, i) => x - before.p[i]));
      expect(difference / size, `step ${t}`).toBeLessThan(t === 1 ? 1e-6 : 0.03);
    }
  });

  it('forgets an old gradient as float32 does, however slowly it decays', async () => {
    // One element has a gradient only at first, beside others that continue: plain rounding would never decay its
    // moments.
    const n = blockSize;
    const slow: OptimizerOptions = { ...options, betas: [0.9, 0.99], weight_decay: 0, lr: 1e-3 };
    const [float, bytes] = [await AdamW.create(n, { threads: 1 }), await AdamW.create(n, { threads: 1 }, 'int8')];
    const [p, q] = [new Float32Array(n), new Float32Array(n)];
    for (let t = 1; t <= 400; t++) {
      const gradient = Float32Array.from({ length: n }, (_, i) =>
        i === 7 ? (t <= 10 ? 0.05 : 0) : 0.05 * Math.cos(i + t),
      );
      await float.step(p, gradient, slow);
      await bytes.step(q, gradient, slow);
    }
    const scale = (bytes.state as { vScale: Float32Array }).vScale[0];
    const second = scale * (bytes.state.v[7] / 255) ** 4;
    expect(float.state.v[7]).toBeLessThan(0.03 * scale);
    expect(second).toBeLessThan(3 * float.state.v[7]);
    expect(Math.abs(q[7] - p[7]) / Math.abs(p[7])).toBeLessThan(0.05);
  });

  it('reaches the loss of float32 on a regression whose features differ a thousandfold in scale', async () => {
    const [n, rows] = [2 * blockSize, 64];
    const stream = new RandomStream(5);
    const features = Array.from({ length: rows }, () =>
      Float32Array.from({ length: n }, (_, i) => stream.normal() * 10 ** ((-3 * i) / n)),
    );
    const truth = vector(stream, n, 1);
    const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, x, i) => sum + x * b[i], 0);
    const targets = features.map(row => dot(row, truth) + stream.normal());
    const losses: Record<string, number> = {};
    for (const format of formats) {
      const adamw = await AdamW.create(n, { threads: 1 }, format);
      const w = new Float32Array(n);
      const order = new RandomStream(6);
      const steps = 300;
      for (let t = 1; t <= steps; t++) {
        const gradient = new Float32Array(n);
        for (let k = 0; k < 8; k++) {
          const i = order.integer(rows);
          const error = dot(features[i], w) - targets[i];
          features[i].forEach((x, j) => (gradient[j] += (error * x) / 8));
        }
        await adamw.step(w, gradient, { ...options, lr: 0.02 * (1 - t / steps), weight_decay: 0, grad_clip: 100 });
      }
      losses[format] = targets.reduce((sum, y, i) => sum + (dot(features[i], w) - y) ** 2, 0) / rows;
    }
    const atFirst = targets.reduce((sum, y) => sum + y * y, 0) / rows;
    expect(losses.float32).toBeLessThan(0.05 * atFirst);
    expect(losses.int8 / losses.float32).toBeGreaterThan(0.9);
    expect(losses.int8 / losses.float32).toBeLessThan(1.1);
  });

  it('needs little more than two bytes per parameter', async () => {
    const n = 100 * blockSize;
    const { state } = await AdamW.create(n, { threads: 1 }, 'int8');
    const bytes = Object.values(state).reduce((sum, part) => sum + (ArrayBuffer.isView(part) ? part.byteLength : 0), 0);
    expect(bytes / n).toBe(2 + 8 / blockSize);
  });
});
