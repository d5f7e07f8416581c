// One environment process from start to end, including its children: sends requests, receives replies and printed
// output. Nothing from the process is trusted: invalid messages, replies without a request, and unanswered pings end
// it, and `ended` reports the reason.
import { spawn, type ChildProcess } from 'node:child_process';
import { PassThrough, type Duplex } from 'node:stream';
import { killTree, ownerTagVariable, newOwnerTag } from '../../node/end-processes';
import { isEnvironmentMessage, namesAsked, replyProblem } from '../../protocol/environment-link';
import type {
  EnvironmentNotice,
  EnvironmentReply,
  EnvironmentRequest,
  LoadedEnvironment,
} from '../../protocol/environment-link';
import { FrameChannel, channelDescriptor } from '../../node/frame-channel';
import { OutputBudget } from '../../node/output-budget';
import { environmentMemory } from '../../node/machine-memory';
import { secrets, type SecretStream } from '../../node/secrets';
import { pipeLines } from './printed-output';
import { ProcessWatch, type Offence, type WatchLimits } from './process-watch';

export interface ProcessHandleOptions {
  /** The Node.js binary that runs the process; this process's own by default. */
  nodePath?: string;
  /** Path of `environment-host.cjs`; `environment-worker.cjs` is in the same folder. */
  entry: string;
  /** Memory limit in bytes of the process and its children; half of the machine's memory by default. */
  memoryBytes?: number;
  /** Node.js options for the process, such as `--inspect=127.0.0.1:0`. */
  execArgv?: string[];
  /** Environment variables of the process (`environmentVariables`). */
  variables: NodeJS.ProcessEnv;
  /** Limits on memory and on unanswered pings, and how often they are checked. */
  watch?: Partial<WatchLimits>;
  /** Receives what environments print; the tag is empty if unknown. */
  onNotice(notice: EnvironmentNotice): void;
}

/** How a process ended. */
export interface ProcessEnd {
  /** A predicate whose subject is the process. */
  how: string;
  /** The reason, if the trainer ended it. */
  offence?: Offence;
}

/**
 * Milliseconds to wait for the remaining output of an exited process, and for the exit of one that closed its channel.
 */
const exitTimeoutMs = 300;

/** Characters of output of a process and its environments that are forwarded per second. */
export const printedPerSecond = 131_072;
/** Log messages per second above which a process counts as flooding; the process's own limit is far lower. */
const noticesPerSecond = 16_384;

/** Processes that have not ended, stopped ones included; they are ended when this process exits. */
const handles = new Set<ProcessHandle>();
process.on('exit', () => {
  for (const handle of [...handles]) handle.endAtExit();
});

/** A request waiting for its reply. */
interface Asked {
  request: EnvironmentRequest;
  /** Names that the reply has not covered yet. */
  open: Set<string>;
  part(reply: EnvironmentReply): void;
  reply(reply: EnvironmentReply | undefined): void;
}

export class ProcessHandle {
  readonly child: ChildProcess;
  readonly ended: Promise<ProcessEnd>;
  alive = true;
  private readonly open = new Map<number, Asked>();
  private readonly ownerTag = newOwnerTag();
  private readonly channel: FrameChannel;
  private readonly watch: ProcessWatch;
  /** Counts pings; their request ids are negative. */
  private pings = 0;
  private stderrTail = '';
  /** Output of threads, by tag and stream: it arrives in chunks, and a secret may span two. */
  private readonly pieces = new Map<string, SecretStream>();
  private offence: Offence | undefined;
  private notices = { second: 0, count: 0 };

  constructor(private readonly options: ProcessHandleOptions) {
    const { nodePath, entry, memoryBytes = environmentMemory(), execArgv = [], watch, onNotice } = options;
    const printed = new OutputBudget(printedPerSecond);
    const child = spawn(nodePath ?? process.execPath, [...execArgv, entry, String(memoryBytes)], {
      stdio: ['ignore', 'pipe', 'pipe', 'overlapped'],
      detached: process.platform !== 'win32', // leads a process group, so that its children can be ended with it
      windowsHide: true,
      env: {
        ...options.variables,
        ...(process.versions.electron && { ELECTRON_RUN_AS_NODE: '1' }),
        [ownerTagVariable]: this.ownerTag,
      },
    });
    this.child = child;
    handles.add(this);
    for (const stream of ['stdout', 'stderr'] as const)
      pipeLines(child[stream], printed, text => {
        if (stream === 'stderr') this.stderrTail = errorLine(text) ?? (this.stderrTail || lastLine(text));
        onNotice({ method: 'log', tag: '', stream, text });
      });
    this.channel = new FrameChannel(pipeOf(child), {
      message: message => this.receive(message, printed),
      broken: (why, ended) => {
        const end = () => this.endFor(channelOffence(why));
        if (ended)
          setTimeout(end, exitTimeoutMs).unref(); // the exit event that follows has a more specific reason
        else end();
      },
    });
    this.watch = new ProcessWatch(
      {
        pid: child.pid,
        ownerTag: this.ownerTag,
        memoryBytes,
        limits: { ...watch, ...(inspected(execArgv) && { silentMs: Infinity }) },
      },
      {
        ping: async () => {
          const reply = await this.ask({ id: -1 - this.pings++, method: 'ping' });
          return reply?.method === 'ping' ? reply.threads : undefined;
        },
        offended: offence => this.endFor(offence),
      },
    );
    this.ended = new Promise(resolve => {
      const end = (how: string) => {
        if (!this.alive) return;
        this.alive = false;
        this.printRests();
        handles.delete(this);
        this.watch.close();
        this.channel.close();
        for (const { reply } of this.open.values()) reply(undefined);
        this.open.clear();
        if (this.offence) return resolve({ how: this.offence.what, offence: this.offence });
        resolve({ how: this.stderrTail ? `${how}; it said: ${this.stderrTail}` : how });
      };
      child.on('error', error => (child.pid === undefined ? end(error.message) : undefined));
      child.on('exit', (code, signal) => {
        this.offence ??= this.watch.exitOffence(signal);
        this.end(); // ends its children
        const how = signal ? `ended by signal ${signal}` : `ended with exit code ${code}`;
        child.once('close', () => end(how)); // its remaining output is read by then
        setTimeout(end, exitTimeoutMs, how).unref();
      });
    });
  }

  private clearedPieces({ tag, stream }: Pick<EnvironmentNotice, 'tag' | 'stream'>): SecretStream {
    const own = `${tag}\n${stream}`;
    const key = this.pieces.has(own) || this.pieces.size < mostStreams ? own : `\n${stream}`;
    const pieces = this.pieces.get(key) ?? secrets.stream();
    this.pieces.set(key, pieces);
    return pieces;
  }

  /** Emits what was held back of each stream as a possible start of a secret. */
  private printRests(): void {
    for (const [key, pieces] of this.pieces) {
      const [tag, stream] = key.split('\n') as [string, 'stdout' | 'stderr'];
      const text = pieces.rest();
      if (text !== '') this.options.onNotice({ method: 'log', tag, stream, text });
    }
  }

  /** Whether a debugger may halt the process; unanswered pings are then ignored. */
  set debugged(on: boolean) {
    this.watch.debugged = on;
  }

  /** Ends the process and its children. */
  end(): void {
    killTree(this.child.pid, this.ownerTag);
    this.watch.endGroup();
  }

  /** Ends the process and its children without waiting, because this process is exiting. */
  endAtExit(): void {
    this.end();
    this.watch.close();
  }

  /** Ends the process because of an offence; only the first offence counts. */
  private endFor(offence: Offence): void {
    if (!this.alive || this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.offence ??= offence;
    this.end();
  }

  /**
   * Sends a request; resolves with the reply, or undefined if the process ends first. `part` receives partial replies
   * before it.
   * @throws FrameError if the request is too large
   */
  ask(
    request: EnvironmentRequest,
    part: (reply: EnvironmentReply) => void = () => undefined,
  ): Promise<EnvironmentReply | undefined> {
    if (!this.alive) return Promise.resolve(undefined);
    return new Promise(resolve => {
      this.channel.send(request);
      this.open.set(request.id, { request, open: namesAsked(request), part, reply: resolve });
    });
  }

  private receive(message: unknown, printed: OutputBudget): void {
    if (!isEnvironmentMessage(message)) return this.endFor(channelOffence('sent an invalid message'));
    this.watch.signOfLife();
    if (message.method === 'log') {
      const text = this.clearedPieces(message).take(printed.take(message.text));
      if (this.floods()) return this.endFor(flood);
      return text === '' ? undefined : this.options.onNotice({ ...message, text });
    }
    const asked = this.open.get(message.id);
    if (!asked) return this.endFor(channelOffence(`answered request ${message.id}, which was never sent`));
    const problem = replyProblem(asked.request, message, asked.open);
    if (problem !== undefined) return this.endFor(channelOffence(problem));
    const reply = withoutSecrets(message);
    if ('more' in reply && reply.more) return asked.part(reply);
    this.open.delete(message.id);
    asked.reply(reply);
  }

  private floods(): boolean {
    const second = Math.floor(performance.now() / 1000);
    if (second !== this.notices.second) this.notices = { second, count: 0 };
    return ++this.notices.count > noticesPerSecond;
  }
}

/**
 * Removes secrets from a reply before observations become tokens, so that tokens and stored texts agree. Bundled code
 * stays unchanged, since its version is a hash of its bytes.
 */
function withoutSecrets(reply: EnvironmentReply): EnvironmentReply {
  const loaded = (environment: LoadedEnvironment) => ({ ...secrets.value(environment), bundle: environment.bundle });
  if (reply.method === 'load')
    return {
      ...reply,
      ...(reply.error && { error: secrets.value(reply.error) }),
      environments: reply.environments.map(loaded),
    };
  if (reply.method === 'prepare')
    return {
      ...reply,
      environments: reply.environments.map(prepared =>
        'environment' in prepared
          ? { ...prepared, environment: loaded(prepared.environment) }
          : secrets.value(prepared),
      ),
    };
  return secrets.value(reply);
}

/** The channel's pipe; a pipe without data if the system could not create it. */
export const pipeOf = ({ stdio }: { stdio?: readonly unknown[] }): Duplex =>
  (stdio?.[channelDescriptor] as Duplex | undefined) ?? new PassThrough();

/** The offence of a process that sent invalid data on its channel; `what` is a predicate. */
export const channelOffence = (what: string): Offence => ({
  kind: 'channel',
  what,
  remedy: `write only to file descriptors that the environment opened (the channel to the trainer is descriptor ${channelDescriptor})`,
});

const flood: Offence = {
  kind: 'flood',
  what: `sent more than ${noticesPerSecond} lines of output in a second`,
  remedy: 'print less',
};

const inspected = (execArgv: readonly string[]): boolean => execArgv.some(argument => argument.startsWith('--inspect'));

/** Maximum number of separate output streams, since the process may name any number of tags. */
const mostStreams = 512;

/** The first line of an output that names an error, if any. */
function errorLine(text: string): string | undefined {
  return /^(Uncaught )?\w*Error.*$/m.exec(text)?.[0].slice(0, 200);
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)!.slice(0, 200);
}
