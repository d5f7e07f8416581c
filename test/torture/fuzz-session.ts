// Runs parsers on inputs in a separate process. `fuzz-watch.ts` starts the process, sends ranges of inputs and receives
// the findings. The number of each input is first written to a file, which identifies the input if the process dies or
// hangs. An input above the time limit is repeated three times and its lowest CPU time counts, because the machine may
// be busy.
import { closeSync, openSync, writeSync } from 'node:fs';
import { mutated, streamOf } from './fuzz-mutations';
import type { FuzzTarget } from './fuzz-target';
import { reinterpret } from '../support/partial';

/** Maximum CPU time per input in milliseconds on the machine of docs/PERFORMANCE.md; scaled up on slower machines. */
export const mostMs = 50;
/** Duration of `slowness` on the machine of docs/PERFORMANCE.md, warm and idle, in milliseconds. */
const referenceMs = 10;
/** Milliseconds without a result after which an input is reported as a hang. */
const silenceMs = 5000;
/** Duration of the warm-up with valid inputs, in milliseconds. */
const warmMs = 100;

/** A request to run the inputs [from, to) of a target. */
export interface FuzzOrder {
  target: string;
  seed: number;
  from: number;
  to: number;
  /** File with the number of the current input. */
  progress: string;
}

/** Kind of violation by an input. */
export type FuzzFault = 'crash' | 'hang' | 'pollution' | 'escape' | 'wrong' | 'death';

export interface FuzzFinding {
  target: string;
  seed: number;
  number: number;
  fault: FuzzFault;
  /** Equal for findings that appear to have the same cause. */
  signature: string;
  message: string;
  /** The input in base64, minimized if possible. */
  bytes: string;
}

export type FuzzReply =
  { finding: FuzzFinding } | { done: { inputs: number; refused: number; slowest: number; broken: number } };

type Outcome = { fault: FuzzFault; signature: string; message: string } | 'answered' | 'refused';

const shared = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Number.prototype];
const ownKeys = shared.map(one => Reflect.ownKeys(one));

/** Removes properties added to shared prototypes and returns their names. */
function pollution(): string[] {
  return shared.flatMap((one, i) => {
    const gained = Reflect.ownKeys(one).filter(key => !ownKeys[i].includes(key));
    for (const key of gained) delete reinterpret<Record<PropertyKey, unknown>>(one)[key];
    return gained.map(String);
  });
}

/** The first prototype in a result that is neither a plain object's nor a class's. */
function oddPrototype(value: unknown): string | undefined {
  const open: unknown[] = [value];
  const seen = new Set<unknown>();
  for (let looked = 0; open.length > 0 && looked < 2000; looked++) {
    const one = open.pop();
    if (typeof one !== 'object' || one === null || seen.has(one)) continue;
    seen.add(one);
    const above = Object.getPrototypeOf(one) as { constructor?: { prototype?: unknown } } | null;
    if (above !== null && (!Object.hasOwn(above, 'constructor') || above.constructor?.prototype !== above))
      return JSON.stringify(Object.keys(above));
    if (ArrayBuffer.isView(one)) continue;
    if (one instanceof Map) open.push(...one.keys(), ...one.values());
    else for (const key of Object.keys(one)) open.push((one as Record<string, unknown>)[key]);
  }
  return undefined;
}

/** The uncaught exception or unhandled rejection since the input started, if one occurred. */
let unhandled: Error | undefined;

async function outcomeOf(target: FuzzTarget, input: Buffer): Promise<Outcome> {
  unhandled = undefined;
  let outcome: Outcome = 'answered';
  try {
    let result = target.run(input);
    if (result instanceof Promise) result = await inTime(result);
    const odd = oddPrototype(result);
    if (odd !== undefined)
      outcome = { fault: 'pollution', signature: 'odd prototype', message: `a result inherits ${odd}` };
  } catch (error) {
    outcome = judged(target, error);
  }
  const gained = pollution();
  if (gained.length > 0)
    return { fault: 'pollution', signature: 'shared', message: `a shared prototype gained ${gained.join(', ')}` };
  return unhandled ? judged(target, unhandled) : outcome;
}

async function inTime(work: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const silent = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(Object.assign(new Error('no result within the time limit'), { name: 'Silence' })),
      silenceMs,
    );
  });
  return Promise.race([work, silent]).finally(() => clearTimeout(timer));
}

function judged({ lawful = ['UserError'] }: FuzzTarget, thrown: unknown): Outcome {
  const error = thrown instanceof Error ? thrown : new Error(`a ${typeof thrown} was thrown: ${String(thrown)}`);
  if (lawful.includes(error.name)) return 'refused';
  const fault = { Broken: 'wrong', Escaped: 'escape', Silence: 'hang' }[error.name] ?? 'crash';
  const frames = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line));
  const at = frames.slice(0, 4).map(frame =>
    frame
      .replace(/\(.*[\\/]/, '(')
      .replace(/:\d+:\d+/, '')
      .trim(),
  );
  const message = error.message.split('\n', 1)[0].slice(0, 200);
  const signature = `${error.name} ${message.replace(/"[^"]*"|'[^']*'|\d+/g, '…').slice(0, 60)} ${at[0] ?? ''}`;
  return { fault: fault as FuzzFault, signature, message: `${error.name}: ${message} [${at.join(' < ')}]` };
}

/** CPU milliseconds of an input: the time of the first run or, above the limit, the minimum of three more runs. */
async function measured(target: FuzzTarget, input: Buffer): Promise<{ outcome: Outcome; ms: number }> {
  const from = performance.now();
  const outcome = await outcomeOf(target, input);
  let ms = performance.now() - from;
  const { mostMs: most = mostMs } = target;
  if (ms <= most) return { outcome, ms };
  for (let times = 0; times < 3; times++) {
    const before = process.cpuUsage();
    await outcomeOf(target, input);
    const { user, system } = process.cpuUsage(before);
    ms = Math.min(ms, (user + system) / 1000);
  }
  if (ms <= most * slowness() || typeof outcome === 'object') return { outcome, ms };
  return { outcome: { fault: 'hang', signature: 'slow', message: `takes ${Math.round(ms)} ms` }, ms };
}

/** Current slowdown relative to the reference machine, measured with JSON objects; at least 1. */
function slowness(): number {
  const value = Array.from({ length: 500 }, (_, i) => ({ key: `key ${i}`, value: [i, `${i / 7}`] }));
  let least = Infinity;
  for (let times = 0; times < 4; times++) {
    const before = process.cpuUsage();
    for (let i = 0; i < 50; i++) JSON.parse(JSON.stringify(value));
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return Math.max(1, least / referenceMs);
}

/** Searches for a smaller input with the same violation, for at most one second. */
async function shrunk(
  target: FuzzTarget,
  input: Buffer,
  { fault, signature }: Exclude<Outcome, string>,
): Promise<Buffer> {
  const until = performance.now() + 1000;
  let best = input;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < best.length && performance.now() < until;) {
      const less = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      const { outcome } = await measured(target, less);
      if (typeof outcome === 'object' && outcome.fault === fault && outcome.signature === signature) best = less;
      else at += size;
    }
  return best;
}

/** Runs the parser until the engine has compiled it, so that the first inputs are not slower than the others. */
async function warmUp(target: FuzzTarget, corpus: readonly Buffer[]): Promise<void> {
  const until = performance.now() + warmMs;
  for (let times = 0; times < 100 && performance.now() < until; times++)
    for (const entry of corpus) await outcomeOf(target, entry);
}

async function obey(target: FuzzTarget, { target: name, seed, from, to, progress }: FuzzOrder): Promise<void> {
  const corpus = target.corpus.map(entry => Buffer.from(entry as string));
  const file = openSync(progress, 'r+');
  const numberBytes = Buffer.alloc(8);
  const kinds = new Set<string>();
  let [refused, slowest, broken] = [0, 0, 0];
  await target.begin?.();
  await warmUp(target, corpus);
  for (let number = from; number < to; number++) {
    numberBytes.writeDoubleLE(number);
    writeSync(file, numberBytes, 0, 8, 0);
    const input = mutated(corpus, target.form, streamOf(seed, name, number));
    const { outcome, ms } = await measured(target, input);
    slowest = Math.max(slowest, ms);
    if (outcome === 'refused') refused++;
    if (typeof outcome === 'string') continue;
    const { fault, signature, message } = outcome;
    broken++;
    if (kinds.has(`${fault} ${signature}`)) continue;
    kinds.add(`${fault} ${signature}`);
    const bytes = (await shrunk(target, input, outcome)).toString('base64');
    process.send!({ finding: { target: name, seed, number, fault, signature, message, bytes } } satisfies FuzzReply);
  }
  await target.end?.();
  closeSync(file);
  process.send!({ done: { inputs: to - from, refused, slowest, broken } } satisfies FuzzReply);
}

/** Serves the requests of the parent process; exits when the parent exits. */
export function serve(targets: readonly FuzzTarget[]): void {
  process.on('uncaughtException', error => (unhandled ??= error));
  process.on('unhandledRejection', error => (unhandled ??= error instanceof Error ? error : new Error(String(error))));
  process.on(
    'message',
    (order: FuzzOrder) =>
      void obey(
        targets.find(({ name }) => name === order.target)!,
        order,
      ),
  );
  process.on('disconnect', () => process.exit());
}
