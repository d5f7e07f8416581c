// A helper process of the CLI that answers JSON-RPC requests over standard input and output, such as
// `ragen inspect --stdio`. It ends when its standard input ends, so it never outlives the extension host. Must not
// import `vscode`.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import type { MessageConnection } from 'vscode-jsonrpc/node';
import { stdioMessages } from '../../node/stdio-messages';
import type { CliInvocation } from './cli-command';
import { trainerEnvironment } from './node-runtime';

/** Milliseconds after which a process that has not exited is killed. */
const shutdownTimeoutMs = 3000;
const stopped = 'the process was terminated';

export class StdioProcess {
  /** The caller registers its handlers and then calls `listen`. */
  readonly connection: MessageConnection;
  private readonly child: ChildProcessWithoutNullStreams;
  private ended: string | undefined;
  private stderrTail = '';

  /**
   * Starts the CLI with `args`. `log` receives each line of standard error; `onEnd` is called once, when the process
   * has ended or was stopped.
   */
  constructor(
    { node, cli, cwd }: CliInvocation,
    args: readonly string[],
    log: (line: string) => void,
    private readonly onEnd: () => void = () => undefined,
  ) {
    const env = trainerEnvironment(process.env, node);
    this.child = spawn(node.path, [cli, ...args], { cwd, env, windowsHide: true });
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderrTail = text.trim().split('\n').at(-1) || this.stderrTail;
      for (const line of text.trim().split('\n')) log(line);
    });
    this.child.stdin.on('error', () => undefined); // the `close` event reports the error
    this.child.once('error', error => this.end(`${node.path} does not start: ${error.message}`));
    this.child.once('close', code =>
      this.end(`the process ended with exit code ${code}${this.stderrTail && `: ${this.stderrTail}`}`),
    );
    this.connection = stdioMessages(this.child.stdout, this.child.stdin);
  }

  /** Why the process accepts no more requests; undefined while it is alive. */
  get endReason(): string | undefined {
    return this.ended;
  }

  /** Ends the process and its child processes. */
  stop(): void {
    this.child.stdin.end();
    const timer = setTimeout(() => this.child.kill('SIGKILL'), shutdownTimeoutMs);
    this.child.once('close', () => clearTimeout(timer));
    this.ended ??= stopped;
  }

  private end(why: string): void {
    this.ended = this.ended === stopped ? stopped : why;
    this.connection.dispose(); // rejects pending requests
    this.onEnd();
  }
}
