// Gives mutated inputs to every parser of the product: run configurations, overrides, weights, tokenizers, chat templates, models in ONNX form,
// answers of models, frames of protocols, lines of run folders, bodies of HTTP. An input may be refused by the parser's own error and nothing
// else: no crash, no more than `mostMs` of CPU, no property that a shared prototype gains, no path out of a folder. What breaks is told with
// its seed and number, by which the same torture breaks it again, and with its bytes.
import { join } from 'node:path';
import { mostBytes } from './fuzz-mutations';
import { targets } from './fuzz-targets';
import { FuzzWatch, type FuzzedTarget } from './fuzz-watch';
import { scaled, table } from './scale';
import type { TortureScale } from './scale';

/** Inputs of the whole torture, and of CI. */
export const wholeInputs = 1_000_000;
export const inputsInCi = 20_000;

/** Gives so many inputs in all to the targets, each its share; `only` names the targets, all where none is named. */
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

/** The torture's part. @throws where an input breaks a promise */
export async function fuzz(scale: TortureScale): Promise<void> {
  const only = (process.env.FUZZ_TARGETS ?? '').split(',').filter(name => name !== '');
  const entry = join(__dirname, 'fuzz-process.cjs');
  const all = await fuzzAll(scaled(wholeInputs, scale), scale.seed, entry, scale.say, only);
  const rows = all.map(({ name, inputs, refused, seconds, slowest, broken }) => [name, inputs, refused, Math.round(inputs / seconds), Math.round(slowest), broken]); // prettier-ignore
  console.log(table(['parser', 'inputs', 'refused', 'a second', 'slowest, ms', 'broken'], rows));
  const sum = all.reduce((total, { inputs }) => total + inputs, 0);
  console.log(`${sum.toLocaleString('en')} inputs of at most ${mostBytes} bytes`);
  const findings = all.flatMap(one => one.findings);
  if (findings.length > 0)
    throw new Error(
      `${findings.length} kinds of inputs broke a promise: ${[...new Set(findings.map(({ target }) => target))].join(', ')}`,
    );
}
