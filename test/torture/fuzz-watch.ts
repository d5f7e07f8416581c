// Runs parsers on inputs in a child process and monitors it. Reports an input at which the process dies or hangs, and
// continues with the next input in a new process.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mutated, streamOf } from './fuzz-mutations';
import type { FuzzFinding, FuzzOrder, FuzzReply } from './fuzz-session';
import type { FuzzTarget } from './fuzz-target';

/** Milliseconds without progress on one input after which the process is killed. */
const stillMs = 20_000;
const lookMs = 500;
/** Number of process deaths after which a target is abandoned. */
const mostDeaths = 10;

export interface FuzzedTarget {
  name: string;
  inputs: number;
  /** Inputs that the parser refused with an allowed error. */
  refused: number;
  seconds: number;
  /** Milliseconds of the slowest input. */
  slowest: number;
  /** The first finding of each kind. */
  findings: FuzzFinding[];
  /** Inputs with a finding of any kind. */
  broken: number;
}

type Ending = { done: Extract<FuzzReply, { done: object }>['done'] } | { fault: 'hang' | 'death'; message: string };

export class FuzzWatch {
  private child: ChildProcess | undefined;
  private readonly folder = mkdtempSync(join(tmpdir(), 'ragen-fuzz-'));
  private readonly progress = join(this.folder, 'progress');

  /** `entry` is the built fuzz-process. */
  constructor(private readonly entry: string) {}

  /** Runs a target on `count` inputs. */
  async fuzz(target: FuzzTarget, seed: number, count: number): Promise<FuzzedTarget> {
    const { name } = target;
    const found: FuzzedTarget = { name, inputs: 0, refused: 0, seconds: 0, slowest: 0, findings: [], broken: 0 };
    const began = performance.now();
    for (let [from, deaths] = [0, 0]; from < count && deaths < mostDeaths; deaths++) {
      writeFileSync(this.progress, Buffer.alloc(8));
      const order: FuzzOrder = { target: name, seed, from, to: count, progress: this.progress };
      const ended = await this.session(order, finding => found.findings.push(finding));
      if ('done' in ended) {
        const { inputs, refused, slowest, broken } = ended.done;
        found.inputs += inputs;
        found.refused += refused;
        found.slowest = Math.max(found.slowest, slowest);
        found.broken += broken;
        break;
      }
      const number = Math.max(from, readFileSync(this.progress).readDoubleLE());
      const corpus = target.corpus.map(one => Buffer.from(one as string));
      const bytes = mutated(corpus, target.form, streamOf(seed, name, number)).toString('base64');
      found.findings.push({ target: name, seed, number, signature: ended.fault, bytes, ...ended });
      found.inputs += number + 1 - from;
      found.broken++;
      from = number + 1;
    }
    found.seconds = (performance.now() - began) / 1000;
    return found;
  }

  /** Kills the child process. */
  async end(): Promise<void> {
    const { child } = this;
    if (child) await new Promise(resolve => child.once('close', resolve).kill('SIGKILL'));
    rmSync(this.folder, { recursive: true, force: true });
  }

  private start(): ChildProcess {
    const env = { ...process.env, TMPDIR: this.folder, HF_HOME: this.folder, ORT_DISABLE_TELEMETRY: '1' };
    return fork(this.entry, [], {
      env,
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      execArgv: ['--max-old-space-size=1024'],
    });
  }

  /** Runs one order until it is complete, or until the process dies or is killed because it hangs. */
  private session(order: FuzzOrder, report: (finding: FuzzFinding) => void): Promise<Ending> {
    return new Promise(resolve => {
      const child = (this.child ??= this.start());
      let [still, at, since, words] = [false, -1, Date.now(), ''];
      const receive = (text: Buffer): void => void (words = (words + text.toString('utf8')).slice(-4000));
      const look = setInterval(() => {
        const number = readFileSync(order.progress).readDoubleLE();
        if (number !== at) [at, since] = [number, Date.now()];
        else if (Date.now() - since > stillMs) still = child.kill('SIGKILL');
      }, lookMs);
      const end = (ending: Ending): void => {
        clearInterval(look);
        child.off('message', listen).off('close', closed);
        child.stderr!.off('data', receive);
        resolve(ending);
      };
      const listen = (reply: FuzzReply): void => ('finding' in reply ? report(reply.finding) : end(reply));
      const closed = (code: number | null, signal: string | null): void => {
        this.child = undefined;
        const line = /^.*(Error|fatal|FATAL).*$/m.exec(words)?.[0] ?? '';
        if (still) end({ fault: 'hang', message: `takes more than ${stillMs / 1000} s` });
        else
          end({ fault: 'death', message: `its process died (${signal ?? `exit code ${code}`} ${line})`.slice(0, 300) });
      };
      child.stderr!.on('data', receive);
      child.on('message', listen).once('close', closed);
      child.send(order);
    });
  }
}
