// A program and its descendants from start to end. The program leads a process group, which is killed when the program
// has ended, when its time is over, or when the episode is closed. If the environment process itself is killed, the run
// finds the program by a variable that it inherits (envs/api/program-environment.ts).
import { spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import type { Readable } from 'node:stream';
import { programEnvironment } from '../api/program-environment';

/** A program and its arguments, or a command of the shell. */
export type Command = string | readonly string[];

export interface ProgramOptions {
  command: Command;
  folder: string;
  /** Variables of the gateway's process that the program receives, in addition to general ones. */
  pass: readonly string[];
  /** Further variables. */
  variables: Readonly<Record<string, string>>;
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

/** Programs that run; ended when this process exits. */
const running = new Set<Program>();
process.on('exit', () => {
  for (const program of running) program.kill();
});

export class Program {
  /** Resolves when the program and its output have ended. Rejects if the program cannot be started. */
  readonly ended: Promise<ProgramExit>;
  private readonly child: ChildProcessByStdio<null, Readable, Readable>;

  constructor({ command, folder, pass, variables }: ProgramOptions) {
    const env = { ...programEnvironment(pass), ...variables };
    const stdio: ['ignore', 'pipe', 'pipe'] = ['ignore', 'pipe', 'pipe'];
    const detached = process.platform !== 'win32'; // starts a process group
    const options = { cwd: folder, env, stdio, detached, windowsHide: true };
    const child =
      typeof command === 'string'
        ? spawn(command, { ...options, shell: true })
        : spawn(command[0], command.slice(1), options);
    this.child = child;
    running.add(this);
    let [output, errors] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-keptOutput)));
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors = (errors + text).slice(-keptOutput);
      process.stderr.write(text); // goes to the run's log, within its limit
    });
    child.once('exit', () => this.kill()); // descendants that hold the pipes would delay `close`
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

  /** Kills the program and its process group. */
  kill(): void {
    const { pid } = this.child;
    if (pid === undefined) return;
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
