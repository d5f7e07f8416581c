// A program and its descendants from start to end. The program leads a process group, which is killed when the program
// has ended, when its time is over, or when the episode is closed. If the environment process itself is killed, the run
// finds the program by a variable that it inherits (envs/api/program-environment.ts). A program may name a command that
// removes what its own end does not: a container, of which the program is only the client.
import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';

/** A program and its arguments, or a command of the shell. */
export type Command = string | readonly string[];

export interface ProgramOptions {
  command: Command;
  folder: string;
  /** All variables of the program. */
  environment: NodeJS.ProcessEnv;
  /** Command that ends and removes the program's container. It runs unless the program has ended by itself. */
  removal?: readonly string[];
}

export interface ProgramExit {
  code: number | null;
  signal: string | null;
  /** The end of the standard output. */
  output: string;
  /** The end of the standard error. */
  errors: string;
}

/** Maximum characters of each stream that are kept. */
const keptOutput = 65_536;

/** Exit code of podman and docker if the engine failed, which may leave a container. */
const engineFailed = 125;

/** Milliseconds that the removal of a container may take. */
const removalTimeoutMs = 30_000;

/** Programs that run; ended when this process exits. */
const running = new Set<Program>();
process.on('exit', () => {
  for (const program of running) program.kill();
});

export class Program {
  /** Resolves when the program and its output have ended. Rejects if the program cannot be started. */
  readonly ended: Promise<ProgramExit>;
  /** Resolves when the program's container has been removed. */
  private removed: Promise<void> | undefined;
  private hasEnded = false;
  private readonly child: ChildProcessByStdio<null, Readable, Readable>;

  constructor(private readonly options: ProgramOptions) {
    const { command, folder, environment } = options;
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
    const detached = process.platform !== 'win32'; // starts a process group
    const spawning = { cwd: folder, env: environment, stdio, detached, windowsHide: true };
    const child =
      typeof command === 'string'
        ? spawn(command, { ...spawning, shell: true })
        : spawn(command[0], command.slice(1), spawning);
    this.child = child;
    running.add(this);
    let [output, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-keptOutput)));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-keptOutput);
      process.stderr.write(text); // goes to the run's log, within its limit
    });
    child.once('exit', code => {
      this.hasEnded = code !== null && code !== engineFailed;
      this.kill(); // descendants that hold the pipes would delay `close`
    });
    this.ended = new Promise((resolve, reject) => {
      child.once('error', error => {
        running.delete(this);
        reject(error);
      });
      child.once('close', (code, signal) => {
        running.delete(this);
        resolve({ code, signal, output, errors });
      });
    });
    this.ended.catch(() => undefined); // the episode reports the error
  }

  /** Kills the program and its process group, and has its container removed. */
  kill(): void {
    const { pid } = this.child;
    if (pid === undefined) return;
    this.killGroup(pid);
    if (this.options.removal && !this.hasEnded) this.removed ??= this.remove(this.options.removal);
  }

  /** Kills the program, and resolves when it and its container are gone. */
  async end(): Promise<void> {
    this.kill();
    await this.ended.catch(() => undefined);
    await this.removed;
  }

  /** Runs the removal in a process that outlives this one, because this one may be exiting. */
  private remove([file, ...args]: readonly string[]): Promise<void> {
    const { folder, environment } = this.options;
    const child = spawn(file, args, {
      ...{ cwd: folder, env: environment, stdio: 'ignore', detached: true, windowsHide: true },
      timeout: removalTimeoutMs,
    });
    child.unref();
    return new Promise(resolve => {
      child.once('error', () => resolve());
      child.once('close', () => resolve());
    });
  }

  private killGroup(pid: number): void {
    try {
      if (process.platform === 'win32') spawnSync('taskkill', ['/pid', String(pid), '/T', '/F'], { windowsHide: true });
      else process.kill(-pid, 'SIGKILL');
    } catch {
      // the group has ended
    }
  }
}

/** How a program ended, to follow its name. */
export const formatExit = ({ code, signal }: ProgramExit): string =>
  signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`;
