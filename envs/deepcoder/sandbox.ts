// Runs programs that a model wrote, by bubblewrap: namespaces of their own for processes, network, mounts, users, IPC and host name.
//
// Covered: no network, not even the machine's own; a read-only root that holds /usr, the interpreter and nothing of the user's files,
// /etc or the environment's variables; private /tmp and /dev/shm of 16 MiB; only own processes in /proc and for signals; no further
// namespaces, no capabilities, no terminal; wall and CPU time, data of a process, memory of all processes together (looked at every
// 50 ms), processes and threads, files and output. All is killed with its first process, with this one, or when a limit is reached.
// Started by root, programs run as nobody, since root is exempt from the limit of processes.
// Not covered: faults of the kernel itself (no system call is filtered), files below /usr that all may read, what /proc tells of the
// machine, the time that programs take from others, and a memory bomb's first 50 ms within the limits of its processes.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import { MissingDependency } from '../api/environment';

export interface Limits {
  /** Wall and CPU time of one program. */
  seconds: number;
  /** Data of each process, and memory of all processes together. */
  megabytes: number;
}

export interface Outcome {
  /** How the program ended: by itself, or by the limit it reached. */
  by: 'exit' | 'time' | 'memory' | 'output';
  /** Null where a signal ended it. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Program {
  /** Absolute path of the interpreter. */
  interpreter: string;
  /** Its options before the program's file. */
  options: readonly string[];
  /** A folder that the interpreter needs beside /usr. */
  home?: string;
  /** Whether its addresses are bound too, which covers shared memory; for interpreters that reserve few of them. */
  boundAddresses: boolean;
  source: string;
  stdin: string;
}

export type Isolation = 'bubblewrap' | 'none';

const mebibyte = 2 ** 20;
const outputBytes = mebibyte;
const fileBytes = 16 * mebibyte;
/** Enough for an interpreter's own threads. */
const processes = 32;
const nobody = 65534;
const watchMs = 50;
const programFile = '/answer';

/**
 * @throws MissingDependency where programs cannot be isolated on this machine
 */
export function requireIsolation(): void {
  const [command, ...rest] = bubblewrap(
    undefined,
    limited({ seconds: 5, megabytes: 64 }, true, ['/usr/bin/env', 'true']),
    false,
  );
  const { status, error, stderr } = spawnSync(command, rest, {
    ...identity(),
    cwd: '/',
    encoding: 'utf8',
    timeout: 10_000,
  });
  if (status === 0) return;
  const why = error ? 'there is no bwrap' : `bwrap says: ${stderr.trim().split('\n').at(-1) || `exit code ${status}`}`;
  throw new MissingDependency(
    `finds no isolation for the programs it runs (${why})`,
    'install bubblewrap on Linux (apt-get install bubblewrap) where user namespaces are allowed, or set env_config.isolation to none to run programs of the model with your own rights',
  );
}

/** Runs a program to its end or its limits; never rejects for anything that the program does. */
export async function runProgram(program: Program, limits: Limits, isolation: Isolation): Promise<Outcome> {
  if (isolation === 'bubblewrap') {
    const argv = [program.interpreter, ...program.options, programFile];
    const [command, ...rest] = bubblewrap(program.home, limited(limits, program.boundAddresses, argv), true);
    const child = spawn(command, rest, { ...identity(), cwd: '/', stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
    const file = child.stdio[3] as Writable;
    file.on('error', () => undefined); // bwrap may end before it reads
    file.end(program.source);
    return watched(child, program.stdin, limits, () => child.kill('SIGKILL'));
  }
  const folder = mkdtempSync(join(tmpdir(), 'ragen-answer-'));
  try {
    chmodSync(folder, 0o755);
    const file = join(folder, 'answer');
    writeFileSync(file, program.source);
    const argv = [program.interpreter, ...program.options, file];
    const [command, ...rest] = existsSync(prlimit) ? limited(limits, program.boundAddresses, argv, false) : argv;
    const env = { PATH: process.env.PATH, HOME: folder, LANG: 'C.UTF-8' }; // no keys of whoever trains
    const child = spawn(command, rest, { cwd: folder, detached: true, stdio: 'pipe', env });
    return await watched(child, program.stdin, limits, () => {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const identity = () => (process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : {});
const prlimit = '/usr/bin/prlimit';

/** A command under the limits of its process; that of processes counts all of the user's where there is no namespace. */
function limited(limits: Limits, boundAddresses: boolean, argv: readonly string[], isolated = true): string[] {
  const { seconds, megabytes } = limits;
  return [
    prlimit,
    `--data=${megabytes * mebibyte}`,
    ...(boundAddresses ? [`--as=${(megabytes + 256) * mebibyte}`] : []),
    ...(isolated ? [`--nproc=${processes}`] : []),
    `--cpu=${Math.ceil(seconds) + 1}`, // wall time ends it first, but for what runs on several cores
    ...[`--fsize=${fileBytes}`, '--core=0', '--nofile=64', '--', ...argv],
  ];
}

/** bwrap's command line; `withFile`: the program comes through descriptor 3. */
function bubblewrap(home: string | undefined, command: readonly string[], withFile: boolean): string[] {
  // /bin and /lib are folders on some systems and links into /usr on others.
  const roots = ['/bin', '/sbin', '/lib', '/lib64'].flatMap(path => {
    if (!existsSync(path)) return [];
    return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
  });
  const space = ['--size', String(fileBytes), '--tmpfs'];
  return [
    'bwrap',
    ...[
      '--unshare-all',
      '--unshare-user',
      '--disable-userns',
      '--cap-drop',
      'ALL',
      '--die-with-parent',
      '--new-session',
    ],
    ...['--hostname', 'sandbox', '--clearenv', '--setenv', 'PATH', '/usr/bin:/bin', '--setenv', 'HOME', '/tmp'],
    ...['--setenv', 'LANG', 'C.UTF-8', '--ro-bind', '/usr', '/usr', ...roots],
    ...[
      '--ro-bind-try',
      '/etc/ld.so.cache',
      '/etc/ld.so.cache',
      '--ro-bind-try',
      '/etc/alternatives',
      '/etc/alternatives',
    ],
    ...(home === undefined || home.startsWith('/usr/') ? [] : ['--ro-bind', home, home]),
    ...['--proc', '/proc', '--dev', '/dev', ...space, '/dev/shm', '--remount-ro', '/dev', ...space, '/tmp'],
    ...(withFile ? ['--ro-bind-data', '3', programFile] : []),
    ...['--remount-ro', '/', '--chdir', '/tmp', '--', ...command],
  ];
}

function watched(child: ChildProcess, stdin: string, limits: Limits, end: () => void): Promise<Outcome> {
  let by: Outcome['by'] = 'exit';
  const stop = (limit: Outcome['by']) => {
    if (by !== 'exit') return;
    by = limit;
    stopRest(end);
  };
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
      if (texts[name].length > outputBytes) stop('output');
    });
  }
  child.stdin!.on('error', () => undefined); // a program need not read its input
  child.stdin!.end(stdin);
  const timer = setTimeout(() => stop('time'), limits.seconds * 1000);
  const watch = setInterval(() => {
    if (child.pid !== undefined && memoryOf(child.pid) > limits.megabytes * mebibyte) stop('memory');
  }, watchMs);
  return new Promise(resolve => {
    const finish = (code: number | null) => {
      clearTimeout(timer);
      clearInterval(watch);
      resolve({ by, code, stdout: texts.stdout.slice(0, outputBytes), stderr: texts.stderr.slice(0, outputBytes) });
    };
    child.on('error', error => {
      texts.stderr += error.message;
      finish(null);
    });
    child.on('close', finish);
    child.on('exit', () => stopRest(end)); // what it left behind would hold its output open
  });
}

function stopRest(end: () => void): void {
  try {
    end();
  } catch {
    // all of it has ended already
  }
}

/** Bytes that a process and all it started hold in memory beside files; 0 for one that is gone. Memory they share counts for each. */
function memoryOf(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    const own = [...status.matchAll(/^Rss(?:Anon|Shmem):\s+(\d+) kB$/gm)].reduce(
      (sum, [, kB]) => sum + Number(kB) * 1024,
      0,
    );
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return own + (children === '' ? [] : children.split(' ')).reduce((sum, child) => sum + memoryOf(Number(child)), 0);
  } catch {
    return 0;
  }
}
