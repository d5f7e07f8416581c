// AdamW over several steps against its definition in double precision; clipping; a gradient that is not finite changes nothing.
import { describe, expect, it } from 'vitest';
import { AdamW } from '../../../extension/trainer/engine/adamw';
import type { OptimizerOptions } from '../../../extension/trainer/engine/engine';
import { RandomStream } from '../../../extension/trainer/engine/random-stream';

const options: OptimizerOptions = { lr: 0.02, betas: [0.9, 0.99], eps: 1e-6, weight_decay: 0.1, grad_clip: 1 };
const vector = (stream: RandomStream, n: number, size: number): Float32Array =>
  Float32Array.from({ length: n }, () => size * stream.normal());

/** Loshchilov & Hutter, algorithm 2, as PyTorch orders it. */
function reference(
  p: Float64Array,
  m: Float64Array,
  v: Float64Array,
  g: Float32Array,
  t: number,
  o: OptimizerOptions,
): number {
  const norm = Math.hypot(...g);
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

  it.each([NaN, Infinity, 1e30])('takes no step on a gradient that holds %f, and reports it', async bad => {
    const adamw = await AdamW.create(3, { threads: 1 });
    const parameters = Float32Array.of(1, 2, 3);
    await adamw.step(parameters, Float32Array.of(0.1, 0.2, 0.3), options);
    const before = structuredClone({ parameters, state: adamw.state });
    const { norm, applied } = await adamw.step(parameters, Float32Array.of(0.1, bad, 0.3), options);
    expect(applied).toBe(false);
    expect(Number.isFinite(norm)).toBe(false);
    expect({ parameters, state: adamw.state }).toEqual(before);
  });

  it('goes on from a restored state as if it had not been stopped', async () => {
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
