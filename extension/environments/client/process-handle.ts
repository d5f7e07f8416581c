// Manages one environment process and its children from start to end: sends requests to the process, and receives its
// replies and printed output. The process is not trusted. It is ended after an invalid message, a reply without a
// request, or unanswered pings; `ended` then resolves with the reason.
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
  /** Path of the Node.js binary; default the binary of this process. */
  nodePath?: string;
  /** Path of the bundle `environment-host.cjs`; `environment-worker.cjs` must be in the same folder. */
  entry: string;
  /** Maximum bytes of memory of the process and its children; default half of the machine's memory. */
  memoryBytes?: number;
  /** Node.js options for the process, such as `--inspect=127.0.0.1:0`. */
  execArgv?: string[];
  /** All environment variables of the process (`environmentVariables`). */
  variables: NodeJS.ProcessEnv;
  /** Overrides of the default limits on memory and unanswered pings, and of the interval between checks. */
  watch?: Partial<WatchLimits>;
  /** Receives printed text; the tag is empty if the environment that printed it is unknown. */
  onNotice(notice: EnvironmentNotice): void;
}

/** How a process ended. */
export interface ProcessEnd {
  /** How the process ended, worded to follow 'the process', for example 'ended with exit code 1'. */
  how: string;
  /** The reason for which the trainer ended the process; undefined if the process ended by itself. */
  offence?: Offence;
}

/**
 * After the process has exited: milliseconds to wait for its remaining output. After the channel has closed:
 * milliseconds to wait for the exit.
 */
const exitTimeoutMs = 300;

/** Maximum characters of output that are forwarded per second, for the process and its environments together. */
export const printedPerSecond = 131_072;
/** Log messages per second above which the process is ended. A correct process sends far fewer. */
const noticesPerSecond = 16_384;

/**
 * Environment processes that have not ended, including those stopped by SIGSTOP. When the trainer exits, it ends these
 * processes.
 */
const handles = new Set<ProcessHandle>();
process.on('exit', () => {
  for (const handle of [...handles]) handle.endAtExit();
});

/** A request that has not yet received its final reply. */
interface Asked {
  request: EnvironmentRequest;
  /** Names of episodes or tags for which no reply has arrived. */
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
  /** Number of pings sent. A ping has a negative request id, which is computed from this number. */
  private pings = 0;
  private stderrTail = '';
  /**
   * State of the secret detection, for each output stream of each tag. The state is kept between chunks, because a
   * secret may span two chunks.
   */
  private readonly pieces = new Map<string, SecretStream>();
  private offence: Offence | undefined;
  private notices = { second: 0, count: 0 };

  constructor(private readonly options: ProcessHandleOptions) {
    const { nodePath, entry, memoryBytes = environmentMemory(), execArgv = [], watch, onNotice } = options;
    const printed = new OutputBudget(printedPerSecond);
    const child = spawn(nodePath ?? process.execPath, [...execArgv, entry, String(memoryBytes)], {
      stdio: ['ignore', 'pipe', 'pipe', 'overlapped'],
      detached: process.platform !== 'win32', // starts a process group, so that its children can be ended too
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
          setTimeout(end, exitTimeoutMs).unref(); // the exit event may follow with a more specific reason
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
        resolve({ how: this.stderrTail ? `${how}; its last output: ${this.stderrTail}` : how });
      };
      child.on('error', error => (child.pid === undefined ? end(error.message) : undefined));
      child.on('exit', (code, signal) => {
        this.offence ??= this.watch.exitOffence(signal);
        this.end(); // ends its children
        const how = signal ? `ended by signal ${signal}` : `ended with exit code ${code}`;
        child.once('close', () => end(how)); // by then the remaining output has been read
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

  /**
   * Emits the text that was withheld because it might have been the start of a secret. Each stream may have such a
   * text.
   */
  private printRests(): void {
    for (const [key, pieces] of this.pieces) {
      const [tag, stream] = key.split('\n') as [string, 'stdout' | 'stderr'];
      const text = pieces.rest();
      if (text !== '') this.options.onNotice({ method: 'log', tag, stream, text });
    }
  }

  /** If true, unanswered pings are ignored, because a debugger may halt the process. */
  set debugged(on: boolean) {
    this.watch.debugged = on;
  }

  /** Ends the process and its children. */
  end(): void {
    killTree(this.child.pid, this.ownerTag);
    this.watch.endGroup();
  }

  /** Does the same as `end`, but does not wait for anything. Called when this process exits. */
  endAtExit(): void {
    this.end();
    this.watch.close();
  }

  /** Ends the process because of an offence; only the first offence is recorded. */
  private endFor(offence: Offence): void {
    if (!this.alive || this.child.exitCode !== null || this.child.signalCode !== null) return;
    this.offence ??= offence;
    this.end();
  }

  /**
   * Sends a request. Resolves with the final reply, or with undefined if the process ends first.
   * @param part receives the partial replies that precede the final reply
   * @throws FrameError if the request exceeds the size of a frame
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
 * Removes secrets from a reply before observations are tokenized, so that tokens and stored texts agree. Bundled code
 * stays unchanged, because its version is a hash of its bytes.
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

/** Returns the pipe of the channel; an empty stream if the system could not create the pipe. */
export const pipeOf = ({ stdio }: { stdio?: readonly unknown[] }): Duplex =>
  (stdio?.[channelDescriptor] as Duplex | undefined) ?? new PassThrough();

/**
 * Returns the offence of a process that sent invalid data on its channel. `what` says what the process did, for example
 * 'sent an invalid message'.
 */
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

/**
 * Maximum number of output streams that are checked for secrets separately. A limit is needed because the process may
 * send any number of tags.
 */
const mostStreams = 512;

/** Returns the first line of `text` that begins with the name of an error; undefined if no line does. */
function errorLine(text: string): string | undefined {
  return /^(Uncaught )?\w*Error.*$/m.exec(text)?.[0].slice(0, 200);
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)!.slice(0, 200);
}
