// Runs `cli.cjs env …` in a Node.js process for the editor. A call either returns one JSON document, or starts a
// session that exchanges JSON lines. Environment code never runs in the extension host. Must not import `vscode`.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { jsonOrNothing } from '../../common/json';
import { linesOf } from '../../common/stream-lines';
import type { PlayDo, PlayReply } from '../../protocol/environment-tools';
import { UserError } from '../../common/user-error';
import type { CliInvocation } from './cli-command';
import { trainerEnvironment } from './node-runtime';

function start({ node, cli, cwd }: CliInvocation, args: readonly string[]): ChildProcessWithoutNullStreams {
  const env = trainerEnvironment(process.env, node);
  return spawn(node.path, [cli, 'env', ...args], { cwd, env, windowsHide: true });
}

/**
 * Returns the JSON document of `ragen env … --json`, regardless of the exit code. Aborting `signal` ends the process.
 * @throws UserError with the CLI's error message if the CLI prints no document
 */
export function askEnvironmentCli<T>(
  invocation: CliInvocation,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const child = start(invocation, [...args, '--json']);
    const stop = () => child.kill();
    signal?.addEventListener('abort', stop, { once: true });
    let [stdout, stderr] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.once('error', error => reject(new UserError(`${invocation.node.path} does not start: ${error.message}`)));
    child.once('close', () => {
      signal?.removeEventListener('abort', stop);
      const document = jsonOrNothing(stdout) as (T & { error?: { message: string } }) | undefined;
      if (document && document.error === undefined) resolve(document);
      else
        reject(
          new UserError(
            document?.error?.message ?? (stderr.trim().split('\n').at(-1) || 'the environment process was terminated'),
          ),
        );
    });
    child.stdin.end();
  });
}

/** A session of `ragen env play … --stdio`. Requests are answered in order. */
export class PlayProcess {
  private readonly child: ChildProcessWithoutNullStreams;
  private readonly open = new Map<number, (reply: PlayReply) => void>();
  private nextId = 1;
  private stderrTail = '';
  private ended = false;
  /** The first reply, which the process sends without a request. */
  readonly first: Promise<PlayReply>;

  constructor(invocation: CliInvocation, environment: string, seed: number) {
    this.child = start(invocation, ['play', environment, '--seed', String(seed), '--stdio']);
    this.first = this.answer(0);
    void this.listen();
    this.child.stderr
      .setEncoding('utf8')
      .on('data', (text: string) => (this.stderrTail = text.trim() || this.stderrTail));
    this.child.stdin.on('error', () => undefined); // the `close` event reports the error
    this.child.once('error', error => this.end(`${invocation.node.path} does not start: ${error.message}`));
    this.child.once('close', code =>
      this.end(this.stderrTail || `the environment process ended with exit code ${code}`),
    );
  }

  /** Whether the process still accepts requests. */
  get alive(): boolean {
    return !this.ended;
  }

  ask(asked: PlayDo): Promise<PlayReply> {
    const id = this.nextId++;
    const reply = this.answer(id);
    this.child.stdin.write(`${JSON.stringify({ id, ...asked })}\n`);
    return reply;
  }

  /** Ends the process and the environment that it runs. */
  stop(): void {
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill('SIGKILL'), 3000);
    this.child.once('close', () => clearTimeout(timer));
  }

  private async listen(): Promise<void> {
    for await (const line of linesOf(this.child.stdout.setEncoding('utf8'))) {
      const reply = jsonOrNothing(line) as PlayReply | undefined;
      if (reply) this.settle(reply);
    }
  }

  private answer(id: number): Promise<PlayReply> {
    if (this.ended) return Promise.resolve({ id, error: { message: this.stderrTail } });
    return new Promise(resolve => this.open.set(id, resolve));
  }

  private settle(reply: PlayReply): void {
    this.open.get(reply.id)?.(reply);
    this.open.delete(reply.id);
  }

  private end(why: string): void {
    this.ended = true;
    this.stderrTail = why;
    for (const id of [...this.open.keys()]) this.settle({ id, error: { message: why } });
  }
}
