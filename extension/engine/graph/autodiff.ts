// Reverse-mode differentiation: appends the nodes that compute d(loss)/d(x) to a graph. The graph's tape is the list of
// its differentiable operations. This file walks over the tape backwards and sums the results of the operations'
// pullbacks, which are vector-Jacobian products (Griewank & Walther, Evaluating Derivatives, ch. 3). Operations that a
// pullback records are dropped from the tape. `checkpoint` saves memory at the cost of time, because the backward pass
// recomputes values instead of keeping them (ibid., ch. 12).
import type { Graph, TapeRecord, Value } from './graph';
import { binary } from './ops';
import { sameDims, showDims } from './shapes';

/**
 * Returns the gradients of the scalar `loss` with respect to `wrt`, in the order of `wrt` and with the same shapes.
 * @throws if the loss is not a scalar or does not depend on every value of `wrt`.
 */
export function gradients(g: Graph, loss: Value, wrt: readonly Value[]): Value[] {
  if (loss.dims.length !== 0) throw new Error(`autodiff: the loss must be a scalar, got ${showDims(loss.dims)}`);
  const found = backpropagate(g, g.tape, new Map([[loss.name, g.scalar(1)]]), wrt);
  g.tape = [];
  return found.map((dx, i) => {
    if (!dx) throw new Error(`autodiff: the loss does not depend on ${wrt[i].name}`);
    return dx;
  });
}

/**
 * Returns `make(inputs)`, which must have the shape of `inputs`. The intermediate values of `make` are not kept; the
 * backward pass recomputes them. The recomputation reads inputs + 0 · gradient, so it starts only when the gradient has
 * been computed. Without this dependency, an executor may run all recomputations first and keep all their results in
 * memory.
 */
export function checkpoint(g: Graph, inputs: Value, make: (inputs: Value) => Value): Value {
  const inner = (x: Value): { y: Value; tape: TapeRecord[] } => {
    const before = g.tape;
    g.tape = [];
    const y = make(x);
    const tape = g.tape;
    g.tape = before;
    return { y, tape };
  };
  const { y, tape } = inner(inputs);
  const made = new Set(tape.flatMap(record => record.outputs.map(({ name }) => name)));
  const read = new Map(tape.flatMap(record => record.inputs.map(value => [value.name, value])));
  const others = [...read.values()].filter(({ name }) => !made.has(name) && name !== inputs.name);
  g.record([inputs, ...others], [y], ([dy]) => {
    if (!dy) return [];
    const tied = binary(g, 'Add', inputs, binary(g, 'Mul', dy, g.scalar(0)));
    const again = inner(tied);
    const wrt = [tied, inputs, ...others]; // `make` may also capture the inputs directly
    const [through, beside, ...rest] = backpropagate(g, again.tape, new Map([[again.y.name, dy]]), wrt);
    return [through && beside ? binary(g, 'Add', through, beside) : (through ?? beside), ...rest];
  });
  return y;
}

/**
 * Returns x, with a dependency on the scalar `first`, so that `first` is computed before x is used. Without this
 * dependency, an executor may compute `first` last and keep its operands in memory until then. The gradient of the
 * result is the gradient of x.
 */
export function following(g: Graph, x: Value, first: Value): Value {
  const positive = g.emit('Greater', [first, g.scalar(0)], 'bool', []);
  const zero = g.emit('Where', [positive, g.scalar(0), g.scalar(0)], 'float32', []);
  const y = binary(g, 'Add', x, zero);
  g.record([x], [y], ([dy]) => [dy]);
  return y;
}

/** Returns x as a value through which no gradient flows back. */
export const detached = (g: Graph, x: Value): Value => g.emit('Identity', [x], x.type, x.dims);

/**
 * Returns x. The backward pass calls `first`. If `first` returns a scalar, the gradient of x is computed only after
 * this scalar. The scalar may depend on x.
 */
export function gradientFollowing(g: Graph, x: Value, first: () => Value | undefined): Value {
  const y = g.emit('Identity', [x], x.type, x.dims);
  g.record([x], [y], ([dy]) => {
    const before = first();
    return [dy && before ? following(g, dy, before) : dy];
  });
  return y;
}

/**
 * Returns the gradient of each value of `wrt`, or null if the value does not affect any value with a known gradient.
 * `given` contains the known gradients.
 */
function backpropagate(
  g: Graph,
  tape: readonly TapeRecord[],
  given: ReadonlyMap<string, Value>,
  wrt: readonly Value[],
): (Value | null)[] {
  const kept = g.tape;
  g.tape = []; // pullbacks are not differentiated
  const needed = reachable(tape, wrt);
  const sums = new Map(given);
  for (const { inputs, outputs, vjp } of [...tape].reverse()) {
    const incoming = outputs.map(y => sums.get(y.name) ?? null);
    if (incoming.every(dy => dy === null) || !inputs.some(x => needed.has(x.name))) continue;
    vjp(incoming).forEach((dx, i) => {
      const x = inputs[i];
      if (!dx || !needed.has(x.name)) return;
      if (!sameDims(dx.dims, x.dims))
        throw new Error(`autodiff: gradient of ${x.name} is ${showDims(dx.dims)}, not ${showDims(x.dims)}`);
      const sum = sums.get(x.name);
      sums.set(x.name, sum ? binary(g, 'Add', sum, dx) : dx);
    });
  }
  g.tape = kept;
  return wrt.map(x => sums.get(x.name) ?? null);
}

/** Returns the names of all values that depend on `wrt`, including `wrt`. */
function reachable(tape: readonly TapeRecord[], wrt: readonly Value[]): Set<string> {
  const names = new Set(wrt.map(x => x.name));
  for (const { inputs, outputs } of tape) {
    if (inputs.some(x => names.has(x.name))) outputs.forEach(y => names.add(y.name));
  }
  return names;
}
