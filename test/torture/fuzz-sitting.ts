// Inputs are given to parsers in a process of their own: `fuzz-watch.ts` starts it, tells it a range of inputs and hears what broke. Before each input
// its number is written to a file, so that it is known where the process died or stands still. What takes longer than the limit is done three
// times more, and the least CPU time counts: the machine may be at other work.
import { closeSync, openSync, writeSync } from 'node:fs';
import { mutated, streamOf } from './fuzz-mutations';
import type { FuzzTarget } from './fuzz-target';

/** Milliseconds of CPU that an input may take, on the machine of docs/PERFORMANCE.md; on a slower one as much more as it is slower. */
export const mostMs = 50;
/** What `slowness` takes on that machine, warm and at rest. */
const referenceMs = 10;
/** Milliseconds after which an answer that does not come is a hang. */
const silenceMs = 5000;
/** Milliseconds of valid inputs before the first that counts. */
const warmMs = 100;

/** What the process is asked for: inputs [from, to) of a target. */
export interface FuzzOrder {
  target: string;
  seed: number;
  from: number;
  to: number;
  /** File that holds the number of the input in hand. */
  progress: string;
}

/** What is wrong with an input's outcome. */
export type FuzzFault = 'crash' | 'hang' | 'pollution' | 'escape' | 'wrong' | 'death';

export interface FuzzFinding {
  target: string;
  seed: number;
  number: number;
  fault: FuzzFault;
  /** The same for findings of one cause, as far as can be told. */
  signature: string;
  message: string;
  /** The input, made smaller where that was possible, as base64. */
  bytes: string;
}

export type FuzzReply =
  { finding: FuzzFinding } | { done: { inputs: number; refused: number; slowest: number; broken: number } };

type Outcome = { fault: FuzzFault; signature: string; message: string } | 'answered' | 'refused';

const shared = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Number.prototype];
const ownKeys = shared.map(one => Reflect.ownKeys(one));

/** Names that shared prototypes gained; they are taken off again. */
function pollution(): string[] {
  return shared.flatMap((one, i) => {
    const gained = Reflect.ownKeys(one).filter(key => !ownKeys[i].includes(key));
    for (const key of gained) delete (one as unknown as Record<PropertyKey, unknown>)[key];
    return gained.map(String);
  });
}

/** The first prototype in a result that is neither plain nor a class's. */
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

/** What nobody caught, or waited for, since the input began. */
let stray: Error | undefined;

async function outcomeOf(target: FuzzTarget, input: Buffer): Promise<Outcome> {
  stray = undefined;
  let outcome: Outcome = 'answered';
  try {
    let result = target.run(input);
    if (result instanceof Promise) result = await inTime(result);
    const odd = oddPrototype(result);
    if (odd !== undefined) outcome = { fault: 'pollution', signature: 'odd prototype', message: `a result inherits ${odd}` };
  } catch (error) {
    outcome = judged(target, error);
  }
  const gained = pollution();
  if (gained.length > 0) return { fault: 'pollution', signature: 'shared', message: `a shared prototype gained ${gained.join(', ')}` };
  return stray ? judged(target, stray) : outcome;
} // prettier-ignore

async function inTime(work: Promise<unknown>): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const silent = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(Object.assign(new Error('no answer came'), { name: 'Silence' })), silenceMs);
  });
  return Promise.race([work, silent]).finally(() => clearTimeout(timer));
}

function judged({ lawful = ['UserError'] }: FuzzTarget, thrown: unknown): Outcome {
  const error = thrown instanceof Error ? thrown : new Error(`a ${typeof thrown} was thrown: ${String(thrown)}`);
  if (lawful.includes(error.name)) return 'refused';
  const fault = { Broken: 'wrong', Escaped: 'escape', Silence: 'hang' }[error.name] ?? 'crash';
  const frames = (error.stack ?? '').split('\n').filter(line => /^\s+at /.test(line));
  const at = frames.slice(0, 4).map(frame => frame.replace(/\(.*[\\/]/, '(').replace(/:\d+:\d+/, '').trim()); // prettier-ignore
  const message = error.message.split('\n', 1)[0].slice(0, 200);
  const signature = `${error.name} ${message.replace(/"[^"]*"|'[^']*'|\d+/g, '…').slice(0, 60)} ${at[0] ?? ''}`;
  return { fault: fault as FuzzFault, signature, message: `${error.name}: ${message} [${at.join(' < ')}]` };
}

/** CPU milliseconds of an input: as it went, or the least of three where that was too long. */
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

/** How many times slower than the machine of the figures this one is now, by objects and texts that are made and thrown away; at least 1. */
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

/** A smaller input that breaks in the same way; looked for during a second at most. */
async function shrunk(target: FuzzTarget, input: Buffer, { fault, signature }: Exclude<Outcome, string>): Promise<Buffer> {
  const until = performance.now() + 1000;
  let best = input;
  for (let size = Math.ceil(best.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let at = 0; at < best.length && performance.now() < until; ) {
      const less = Buffer.concat([best.subarray(0, at), best.subarray(at + size)]);
      const { outcome } = await measured(target, less);
      if (typeof outcome === 'object' && outcome.fault === fault && outcome.signature === signature) best = less;
      else at += size;
    }
  return best;
} // prettier-ignore

/** Has the parser compiled as it is after some use, so that the first inputs take no longer than others. */
async function warmUp(target: FuzzTarget, corpus: readonly Buffer[]): Promise<void> {
  const until = performance.now() + warmMs;
  for (let times = 0; times < 100 && performance.now() < until; times++)
    for (const entry of corpus) await outcomeOf(target, entry);
}

async function obey(target: FuzzTarget, { target: name, seed, from, to, progress }: FuzzOrder): Promise<void> {
  const corpus = target.corpus.map(entry => Buffer.from(entry as string));
  const file = openSync(progress, 'r+');
  const inHand = Buffer.alloc(8);
  const kinds = new Set<string>();
  let [refused, slowest, broken] = [0, 0, 0];
  await target.begin?.();
  await warmUp(target, corpus);
  for (let number = from; number < to; number++) {
    inHand.writeDoubleLE(number);
    writeSync(file, inHand, 0, 8, 0);
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

/** Takes the orders of the process that started this one, and ends with it. */
export function serve(targets: readonly FuzzTarget[]): void {
  process.on('uncaughtException', error => (stray ??= error));
  process.on('unhandledRejection', error => (stray ??= error instanceof Error ? error : new Error(String(error))));
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
