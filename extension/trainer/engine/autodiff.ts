// Reverse-mode differentiation: appends to a graph the nodes that compute d(loss)/d(x) by walking its tape backwards and summing
// what each pullback returns (Griewank & Walther, Evaluating Derivatives, ch. 3). The pullbacks' own records are dropped.
// `checkpoint` trades time for memory: what it wraps is computed again on the way back instead of being kept (ibid., ch. 12).
import type { Graph, TapeRecord, Value } from './graph';
import { binary } from './ops';
import { sameDims, showDims } from './shapes';

/**
 * Gradients of the scalar `loss` with respect to `wrt`, in that order and with the same shapes.
 * @throws when the loss is not a scalar, or does not depend on one of `wrt`.
 */
export function gradients(g: Graph, loss: Value, wrt: readonly Value[]): Value[] {
  if (loss.dims.length !== 0) throw new Error(`autodiff: the loss must be a scalar, got ${showDims(loss.dims)}`);
  const found = pullBack(g, g.tape, new Map([[loss.name, g.scalar(1)]]), wrt);
  g.tape = [];
  return found.map((dx, i) => {
    if (!dx) throw new Error(`autodiff: the loss does not depend on ${wrt[i].name}`);
    return dx;
  });
}

/**
 * The value of `make` on `inputs` (of one shape with its result's), whose inner values are not kept for the way back but made again
 * there. What is made again waits for the gradient that needs it: the inputs are tied to it by adding 0 times it, else an executor
 * might make everything again at once.
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
    const wrt = [tied, inputs, ...others]; // `make` may also read the inputs from outside
    const [through, beside, ...rest] = pullBack(g, again.tape, new Map([[again.y.name, dy]]), wrt);
    return [through && beside ? binary(g, 'Add', through, beside) : (through ?? beside), ...rest];
  });
  return y;
}

/**
 * The value x, computed only after the scalar `first`, whatever that is: an executor that would otherwise come to `first` at the very end
 * need not keep until then what it is made from. The gradient is x's.
 */
export function following(g: Graph, x: Value, first: Value): Value {
  const positive = g.emit('Greater', [first, g.scalar(0)], 'bool', []);
  const zero = g.emit('Where', [positive, g.scalar(0), g.scalar(0)], 'float32', []);
  const y = binary(g, 'Add', x, zero);
  g.record([x], [y], ([dy]) => [dy]);
  return y;
}

/** x as a constant: no gradient flows back from here. */
export const detached = (g: Graph, x: Value): Value => g.emit('Identity', [x], x.type, x.dims);

/** x; its gradient is computed only after the scalar that `first` gives, if any, which may be made from x. */
export function gradientFollowing(g: Graph, x: Value, first: () => Value | undefined): Value {
  const y = g.emit('Identity', [x], x.type, x.dims);
  g.record([x], [y], ([dy]) => {
    const before = first();
    return [dy && before ? following(g, dy, before) : dy];
  });
  return y;
}

/** Gradients of `wrt`, given those of some values; null where none flows. */
function pullBack(
  g: Graph,
  tape: readonly TapeRecord[],
  given: ReadonlyMap<string, Value>,
  wrt: readonly Value[],
): (Value | null)[] {
  const kept = g.tape;
  g.tape = []; // what the pullbacks record is not differentiated again
  const needed = reachable(tape, wrt);
  const sums = new Map(given);
  for (const { inputs, outputs, pullback } of [...tape].reverse()) {
    const incoming = outputs.map(y => sums.get(y.name) ?? null);
    if (incoming.every(dy => dy === null) || !inputs.some(x => needed.has(x.name))) continue;
    pullback(incoming).forEach((dx, i) => {
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

/** Names of all values that depend on `wrt`, themselves included. */
function reachable(tape: readonly TapeRecord[], wrt: readonly Value[]): Set<string> {
  const names = new Set(wrt.map(x => x.name));
  for (const { inputs, outputs } of tape) {
    if (inputs.some(x => names.has(x.name))) outputs.forEach(y => names.add(y.name));
  }
  return names;
}
