// Client of a local Lean REPL (leanprover-community/repl): a process that reads a JSON command and a blank line, and
// replies with JSON and a blank line. The state after each header is cached, so each header is imported once. The
// number of lines of the header is added to the line numbers in replies. A command that times out kills the process;
// the next command starts a new process.
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { programEnvironment } from '../api/program-environment';
import { checkOf, type Check, type Checker, type Script } from './lean-check';

export interface ReplOptions {
  /** Program and arguments, such as `lake`, `exe`, `repl`. */
  command: readonly string[];
  /** Working directory of the REPL; null: the working directory of this process. */
  folder: string | null;
  /** Timeout per command in seconds. */
  timeout: number;
  /** Timeout in seconds for executing a header, including the start of the process. */
  headerTimeout: number;
}

class Repl {
  private buffer = '';
  private waiting: ((reply: unknown) => void) | undefined;
  private ended: string | undefined;
  /** For each header, the REPL's id of the state after the header. */
  readonly states = new Map<string, number>();

  private constructor(private readonly child: ChildProcessWithoutNullStreams) {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.buffer += text;
      this.deliver();
    });
    let last = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => (last = (last + text).slice(-400)));
    child.stdin.on('error', () => undefined); // the `close` event reports the error
    child.on('error', error => this.end(`The Lean REPL cannot be started (${error.message}).`));
    child.on('close', code =>
      this.end(`The Lean REPL ended with exit code ${code}${last ? ` (${last.trim()})` : ''}.`),
    );
  }

  static start([program, ...args]: readonly string[], folder: string | null): Repl {
    // A proof may execute code, so the REPL receives only the variables that Lean needs and no keys.
    const env = programEnvironment([
      'ELAN_*',
      'LEAN_PATH',
      'LEAN_SRC_PATH',
      'LEAN_SYSROOT',
      'LEAN_NUM_THREADS',
      'LAKE_*',
      'XDG_*',
    ]);
    return new Repl(spawn(program, args, { cwd: folder ?? undefined, stdio: 'pipe', env }));
  }

  get alive(): boolean {
    return this.ended === undefined;
  }

  /** Sends a command and returns its reply. Returns a failure if the process ends or the command times out. */
  async ask(command: object, seconds: number): Promise<{ reply: unknown } | Extract<Check, { failure: string }>> {
    if (this.ended !== undefined) return { failure: this.ended, timedOut: false };
    const late = Symbol();
    let timer: NodeJS.Timeout | undefined;
    const reply = await Promise.race([
      new Promise(resolve => {
        this.waiting = resolve;
        this.child.stdin.write(`${JSON.stringify(command)}\n\n`);
      }),
      new Promise(resolve => (timer = setTimeout(() => resolve(late), seconds * 1000))),
    ]);
    clearTimeout(timer);
    this.waiting = undefined;
    if (reply === late) {
      this.stop();
      return { failure: `Lean timed out after ${seconds} seconds.`, timedOut: true };
    }
    return this.ended === undefined || reply !== undefined ? { reply } : { failure: this.ended, timedOut: false };
  }

  stop(): void {
    this.end('The Lean REPL was stopped.');
    this.child.kill('SIGKILL');
  }

  private end(why: string): void {
    this.ended ??= why;
    this.waiting?.(undefined);
  }

  /**
   * Resolves the pending command when its reply is complete. A blank line ends the reply if the text before it is valid
   * JSON.
   */
  private deliver(): void {
    for (let at = this.buffer.indexOf('\n\n'); at >= 0; at = this.buffer.indexOf('\n\n', at + 1)) {
      try {
        const reply: unknown = JSON.parse(this.buffer.slice(0, at));
        this.buffer = this.buffer.slice(at + 2).trimStart();
        this.waiting?.(reply);
        return;
      } catch {
        // this blank line is part of the reply
      }
    }
  }
}

/** Returns a checker that checks one script at a time. All scripts use one process; the first script starts it. */
export function replChecker({ command, folder, timeout, headerTimeout }: ReplOptions): Checker {
  let repl: Repl | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  async function check({ header, body }: Script): Promise<Check> {
    if (!repl?.alive) repl = Repl.start(command, folder);
    let env = repl.states.get(header);
    if (env === undefined && header.trim() !== '') {
      const answer = await repl.ask({ cmd: header }, headerTimeout);
      if ('failure' in answer) return answer;
      const said = checkOf(answer.reply);
      if ('failure' in said || said.messages.some(({ severity }) => severity === 'error')) return said;
      env = (answer.reply as { env?: number }).env;
      if (env !== undefined) repl.states.set(header, env);
    }
    const answer = await repl.ask({ cmd: body, ...(env !== undefined && { env }) }, timeout);
    return 'failure' in answer ? answer : checkOf(answer.reply, header.split('\n').length - 1);
  }

  return {
    check(script) {
      const turn = queue.then(() => check(script));
      queue = turn;
      return turn;
    },
  };
}
