// Runs every parser of the product on mutated inputs: run configurations, overrides, weights, tokenizers, chat
// templates, ONNX models, model output, protocol messages, lines of run folders, HTTP bodies,
// pictures. A parser must return a
// result or throw its own error, within `mostMs` of CPU time, without adding a property to a shared prototype and
// without leaving its folder. A violation is reported with its bytes, and with the seed and number that reproduce it.
import { join } from 'node:path';
import { mostBytes } from './fuzz-mutations';
import { targets } from './fuzz-targets';
import { FuzzWatch, type FuzzedTarget } from './fuzz-watch';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

/** Number of inputs at full scale; `inputsInCi` is the number in CI. */
export const wholeInputs = 1_000_000;
export const inputsInCi = 20_000;

/**
 * Distributes this number of inputs over the targets by weight. `only` contains names of targets; empty selects all.
 */
export async function fuzzAll(
  inputs: number,
  seed: number,
  entry: string,
  say: (line: string) => void,
  only: readonly string[] = [],
): Promise<FuzzedTarget[]> {
  const chosen = targets.filter(({ name }) => only.length === 0 || only.includes(name));
  const weights = chosen.reduce((sum, { weight }) => sum + weight, 0);
  const all: FuzzedTarget[] = [];
  const watch = new FuzzWatch(entry);
  try {
    for (const target of chosen) {
      const one = await watch.fuzz(target, seed, Math.ceil((inputs * target.weight) / weights));
      all.push(one);
      say(`${one.name}: ${one.inputs} inputs, ${one.refused} refused, ${Math.round(one.inputs / one.seconds)}/s`);
      for (const { number, fault, message, bytes } of one.findings)
        say(`${fault} in ${one.name}, seed ${seed}, input ${number}: ${message}\n  base64 ${bytes}`);
    }
    return all;
  } finally {
    await watch.end();
  }
}

/** The part `fuzz` of `npm run torture`. @throws if an input violates a guarantee */
export async function fuzz(scale: TortureScale): Promise<void> {
  const only = (process.env.FUZZ_TARGETS ?? '').split(',').filter(name => name !== '');
  const entry = join(__dirname, 'fuzz-process.cjs');
  const all = await fuzzAll(scaled(wholeInputs, scale), scale.seed, entry, scale.say, only);
  const rows = all.map(({ name, inputs, refused, seconds, slowest, broken }) => [
    name,
    inputs,
    refused,
    Math.round(inputs / seconds),
    Math.round(slowest),
    broken,
  ]);
  console.log(table(['parser', 'inputs', 'refused', 'per second', 'slowest, ms', 'broken'], rows));
  const sum = all.reduce((total, { inputs }) => total + inputs, 0);
  console.log(`${sum.toLocaleString('en')} inputs of at most ${mostBytes} bytes`);
  const findings = all.flatMap(one => one.findings);
  if (findings.length > 0)
    throw new Error(
      `${findings.length} kinds of inputs broke a promise: ${[...new Set(findings.map(({ target }) => target))].join(', ')}`,
    );
}
