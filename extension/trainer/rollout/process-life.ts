// One life of the environment process, from its start to its end with all that it started: requests go in, replies and what is printed come out.
// What answers with anything but the protocol's messages is ended.
import { fork, type ChildProcess } from 'node:child_process';
import { endStarted, markVariable, newMark } from '../../protocol/end-processes';
import { isEnvironmentMessage } from '../../protocol/environment-link';
import type {
  EnvironmentNotice,
  EnvironmentReply,
  EnvironmentRequest,
  LoadedEnvironment,
} from '../../protocol/environment-link';
import { OutputBudget } from '../../protocol/output-budget';
import { environmentMemory } from '../machine-memory';
import { secrets, type SecretStream } from '../secrets';
import { handOn } from './printed-output';

export interface ProcessLifeOptions {
  /** The Node.js that runs the process; this process's own by default. */
  nodePath?: string;
  /** Path of `environment-host.cjs`; `environment-worker.cjs` lies beside it. */
  entry: string;
  /** Bytes that the process may hold; half of the machine's memory by default. */
  memoryBytes?: number;
  /** Options of Node.js for the process, such as `--inspect=127.0.0.1:0`. */
  execArgv?: string[];
  /** Variables of the process: what its environments are known to read (`environmentVariables`). */
  variables: NodeJS.ProcessEnv;
  /** What environments print; the tag is empty where it is not known. */
  onNotice(notice: EnvironmentNotice): void;
}

/** Milliseconds to wait for the output of a process that has ended. */
const lastWordsMs = 300;

/** Characters of what a process and its environments print that are passed on in a second. */
export const printedPerSecond = 131_072;

/** Who waits for a reply. */
interface Asked {
  part(reply: EnvironmentReply): void;
  reply(reply: EnvironmentReply | undefined): void;
}

export class ProcessLife {
  readonly child: ChildProcess;
  /** How it ended, as words for a sentence. */
  readonly ended: Promise<string>;
  alive = true;
  private readonly open = new Map<number, Asked>();
  private readonly mark = newMark();
  private lastWords = '';
  /** What threads print, by tag and stream: it comes in pieces, and a secret may lie across two. */
  private readonly pieces = new Map<string, SecretStream>();

  constructor(options: ProcessLifeOptions) {
    const { nodePath, entry, memoryBytes = environmentMemory(), execArgv = [], onNotice } = options;
    const printed = new OutputBudget(printedPerSecond);
    const child = fork(entry, [String(memoryBytes)], {
      execPath: nodePath ?? process.execPath,
      execArgv,
      serialization: 'advanced',
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      detached: process.platform !== 'win32', // leads a process group, so that all it starts can be ended with it
      env: { ...options.variables, [markVariable]: this.mark },
    });
    this.child = child;
    for (const stream of ['stdout', 'stderr'] as const)
      handOn(child[stream], printed, text => {
        if (stream === 'stderr') this.lastWords = errorLine(text) ?? (this.lastWords || lastLine(text));
        onNotice({ method: 'log', tag: '', stream, text });
      });
    child.on('message', (message: unknown) => {
      if (!isEnvironmentMessage(message)) {
        this.lastWords = 'an answer that is none';
        return this.end();
      }
      if (message.method === 'log') {
        const text = this.clearedPieces(message).take(printed.take(message.text));
        return text === '' ? undefined : onNotice({ ...message, text });
      }
      const asked = this.open.get(message.id);
      const reply = withoutSecrets(message);
      if ('more' in reply && reply.more) return asked?.part(reply);
      this.open.delete(message.id);
      asked?.reply(reply);
    });
    this.ended = new Promise(resolve => {
      const end = (how: string) => {
        this.alive = false;
        for (const [key, pieces] of this.pieces) {
          const [tag, stream] = key.split('\n') as [string, 'stdout' | 'stderr'];
          const text = pieces.rest();
          if (text !== '') onNotice({ method: 'log', tag, stream, text });
        }
        for (const { reply } of this.open.values()) reply(undefined);
        this.open.clear();
        resolve(this.lastWords ? `${how}; it said: ${this.lastWords}` : how);
      };
      child.on('error', error => (child.pid === undefined ? end(error.message) : undefined));
      child.on('exit', (code, signal) => {
        this.end(); // what it started must not outlive it
        const how = signal ? `ended by signal ${signal}` : `ended with exit code ${code}`;
        child.once('close', () => end(how)); // its last words are read by then
        setTimeout(end, lastWordsMs, how).unref();
      });
    });
  }

  private clearedPieces({ tag, stream }: Pick<EnvironmentNotice, 'tag' | 'stream'>): SecretStream {
    const key = `${tag}\n${stream}`;
    const pieces = this.pieces.get(key) ?? secrets.stream();
    this.pieces.set(key, pieces);
    return pieces;
  }

  /** Ends the process with all that it started. */
  end(): void {
    endStarted(this.child.pid, this.mark);
  }

  /** The reply, or undefined when the process ends before it; `part` hears what comes before the reply. */
  ask(
    request: EnvironmentRequest,
    part: (reply: EnvironmentReply) => void = () => undefined,
  ): Promise<EnvironmentReply | undefined> {
    if (!this.alive) return Promise.resolve(undefined);
    return new Promise(resolve => {
      this.open.set(request.id, { part, reply: resolve });
      if (this.child.connected) this.child.send(request, () => undefined); // a failed send shows as the end of the process
    });
  }
}

/**
 * A reply without secrets: what a model is to see is cleared before it becomes tokens, so that these and the texts that are kept agree. Code
 * stays as it is, since its version is that of its bytes.
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

/** The line of an output that names an error. */
function errorLine(text: string): string | undefined {
  return /^(Uncaught )?\w*Error.*$/m.exec(text)?.[0].slice(0, 200);
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)!.slice(0, 200);
}
