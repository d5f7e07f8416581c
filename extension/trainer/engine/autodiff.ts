// Reverse-mode differentiation: appends to a graph the nodes that compute d(loss)/d(x) by walking its tape backwards and summing
// what each pullback returns (Griewank & Walther, Evaluating Derivatives, ch. 3). The pullbacks' own records are dropped.
import type { Graph, Value } from './graph';
import { binary } from './ops';
import { sameDims, showDims } from './shapes';

/**
 * Gradients of the scalar `loss` with respect to `wrt`, in that order and with the same shapes.
 * @throws when the loss is not a scalar, or does not depend on one of `wrt`.
 */
export function gradients(g: Graph, loss: Value, wrt: readonly Value[]): Value[] {
  if (loss.dims.length !== 0) throw new Error(`autodiff: the loss must be a scalar, got ${showDims(loss.dims)}`);
  const tape = [...g.tape];
  const needed = reachable(tape, wrt);
  const sums = new Map<string, Value>([[loss.name, g.scalar(1)]]);
  for (const { inputs, outputs, pullback } of tape.reverse()) {
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
  g.tape.length = 0;
  return wrt.map(x => {
    const dx = sums.get(x.name);
    if (!dx) throw new Error(`autodiff: the loss does not depend on ${x.name}`);
    return dx;
  });
}

/** Names of all values that depend on `wrt`, themselves included. */
function reachable(tape: Graph['tape'], wrt: readonly Value[]): Set<string> {
  const names = new Set(wrt.map(x => x.name));
  for (const { inputs, outputs } of tape) {
    if (inputs.some(x => names.has(x.name))) outputs.forEach(y => names.add(y.name));
  }
  return names;
}
