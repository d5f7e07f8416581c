// Runs programs written by a model under bubblewrap, in separate namespaces for processes, network, mounts, users, IPC
// and host name.
//
// The isolation covers:
// * The program gets none of the parent's variables, key rings and descriptors, not even through /proc.
// * There is no network, not even loopback, and no sockets except connected pairs.
// * The root is read-only. It contains /usr, the interpreter, /etc/ld.so.cache and /etc/alternatives. /tmp and /dev/shm
//   are private and hold 16 MiB each.
// * /proc shows only the sandbox's own processes, and only they can be signalled.
// * There are no nested namespaces, no capabilities and no terminal; system calls are filtered (system-calls.ts).
// * These are limited: wall time and CPU time, the data segment of each process, the number of processes and threads,
//   file sizes, output, and the total memory of all processes. The total memory is polled every 50 ms; if a cgroup is
//   available, the kernel limits it too. All processes are killed when the first process ends, when this process ends,
//   or when a limit is reached. If this process is root, programs run as nobody, because root is exempt from the
//   process limit.
// The isolation does not cover: kernel bugs reachable through the remaining system calls, world-readable files in /usr,
// machine information in /proc, and CPU time taken from other programs. Without a cgroup, it also does not cover memory
// that is allocated between two polls within the per-process limits, and kernel memory (pipe and socket buffers,
// mappings).
// No npm package is used, because isolated-vm and vm2 confine only JavaScript.
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, isAbsolute, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { MissingDependency } from '../api/environment';
import { programEnvironment } from '../api/program-environment';
import { ControlGroup } from './control-group';
import { memoryOf, memoryOfFiles, processesBelow } from './memory-watch';
import { filteredProcessor, seccompFilter } from './seccomp-filter';

export interface Limits {
  /** Seconds of wall time; the CPU limit is one second higher. */
  seconds: number;
  /** Limit in MiB. It applies to the data segment of each process, and to the total memory of all processes. */
  megabytes: number;
}

export interface Outcome {
  /** `exit` if the program ended by itself, otherwise the limit that the program reached. */
  by: 'exit' | 'time' | 'memory' | 'output';
  /** Exit code; null if a signal ended the program. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Program {
  /** Absolute path of the interpreter. */
  interpreter: string;
  /** Command-line arguments between the interpreter's path and the path of the program. */
  options: readonly string[];
  /** A folder outside /usr that the interpreter needs. */
  home?: string;
  /**
   * Whether to limit the address space, which includes shared memory. False for interpreters that reserve a large
   * address space.
   */
  boundAddresses: boolean;
  source: string;
  stdin: string;
}

export type Isolation = 'bubblewrap' | 'none';

const mebibyte = 2 ** 20;
const outputBytes = mebibyte;
const fileBytes = 16 * mebibyte;
/** Maximum number of processes and threads of a program. An interpreter needs several threads for itself. */
const processes = 32;
const O_CLOEXEC = 0o2000000;
const nobody = 65534;
const watchMs = 50;
/**
 * Maximum seconds for bubblewrap to start; not part of the program's time. Creating namespaces takes seconds on a busy
 * machine.
 */
const startSeconds = 30;
/** Milliseconds for which output streams may stay open after the process has ended. */
const drainMs = 2000;
const programFile = '/answer';
/** The only writable folders of a program; they are in memory. */
const privateFolders = ['/tmp', '/dev/shm'];

/** The mechanisms that isolate and limit programs on this machine, formatted for a table. */
export interface Protection {
  namespaces: string;
  memory: string;
}

/**
 * Returns the protection that applies to programs on this machine; runs a program to determine it.
 * @throws MissingDependency if programs cannot be isolated on this machine
 */
export async function requireIsolation(): Promise<Protection> {
  const refuse = (why: string): never => {
    throw new MissingDependency(
      `cannot isolate the programs in answers (${why})`,
      'install bubblewrap on Linux (apt-get install bubblewrap) where user namespaces are allowed, or set env_config.isolation to none to run programs of the model with your own user permissions',
    );
  };
  if (bubblewrapPath() === undefined) return refuse('the program bwrap is not installed');
  if (!filteredProcessor()) return refuse(`system calls cannot be filtered on ${process.arch}`);
  const probe: Program = {
    interpreter: '/usr/bin/env',
    options: ['true'],
    boundAddresses: true,
    source: '',
    stdin: '',
  };
  const { code, stderr, group } = await isolated(probe, { seconds: 5, megabytes: 64 });
  if (code !== 0) return refuse(`bwrap says: ${stderr.trim().split('\n').at(-1) || `exit code ${code}`}`);
  const watch = `polling every ${watchMs} ms`;
  return {
    namespaces: 'namespaces and a system-call filter',
    memory: group === undefined ? `${watch} and limits of each process` : `${group}, ${watch}`,
  };
}

/** Runs a program until it ends or reaches a limit. Whatever the program does, the returned promise does not reject. */
export async function runProgram(program: Program, limits: Limits, isolation: Isolation): Promise<Outcome> {
  if (isolation === 'bubblewrap') {
    const { group: _, ...outcome } = await isolated(program, limits);
    return outcome;
  }
  const folder = mkdtempSync(join(tmpdir(), 'ragen-answer-'));
  try {
    chmodSync(folder, 0o755);
    const file = join(folder, 'answer');
    writeFileSync(file, program.source);
    const argv = [program.interpreter, ...program.options, file];
    const [command, ...rest] = existsSync(prlimit) ? limited(limits, program.boundAddresses, argv, false) : argv;
    // As the user nobody, the program cannot access root's processes and their variables. The user nobody can execute
    // the interpreter only if every user may enter the interpreter's folders.
    const other = isOpenToAll(program.interpreter) && isOpenToAll(folder) ? identity() : undefined;
    if (other) chownSync(folder, other.uid, other.gid);
    const env = { ...programEnvironment(), HOME: folder, LANG: 'C.UTF-8' };
    const child = startedAlone(command, rest, ['pipe', 'pipe', 'pipe'], { ...other, cwd: folder, detached: true, env });
    return await watched(child, program.stdin, limits, {
      end: () => void (child.pid !== undefined && process.kill(-child.pid, 'SIGKILL')),
      memory: () => (child.pid === undefined ? 0 : memoryOf(child.pid, limits.megabytes * mebibyte)),
      ranOut: () => false,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Runs a program in isolation. In the result, `group` describes the cgroup's limits; it is undefined without a cgroup.
 */
async function isolated(program: Program, limits: Limits): Promise<Outcome & { group: string | undefined }> {
  const bytes = limits.megabytes * mebibyte;
  const argv = [program.interpreter, ...program.options, programFile];
  const command = bubblewrap(program, limited(limits, program.boundAddresses, argv));
  // bwrap is the sandbox's first process, and every program in the sandbox can read its variables. Therefore `env` is
  // empty.
  const pipes = Array.from({ length: 7 }, () => 'pipe' as const);
  const child = startedAlone(bubblewrapPath() ?? 'bwrap', command, pipes, { ...identity(), env: {}, cwd: '/' });
  const [source, filter, info, go] = child.stdio.slice(3) as [Writable, Writable, Readable, Writable];
  for (const stream of [source, filter, info, go]) stream.on('error', () => undefined); // bwrap may exit early
  source.end(program.source);
  filter.end(seccompFilter(filteredProcessor()!));
  let inside: number | undefined;
  /** PID namespace of the sandbox. Distinguishes the sandbox's first process from a later process with the same id. */
  let space: string | undefined;
  let group: ControlGroup | undefined;
  let about: string | undefined;
  // bwrap reports the id of the sandbox's first process on `info`, and starts the program when it receives a byte on
  // `go`.
  let said = '';
  const begun = new Promise<void>(resolve =>
    info.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const pid = /"child-pid": (\d+)/.exec(said)?.[1];
      if (pid === undefined || inside !== undefined) return;
      inside = Number(pid);
      space = processSpace(inside);
      group = ControlGroup.make({ bytes: bytes + privateFolders.length * fileBytes, processes: processes + 2 });
      if (group?.join(inside)) about = group.about;
      go.end('!');
      resolve();
    }),
  );
  const outcome = await watched(child, program.stdin, limits, {
    begun,
    end: () => {
      // Killing bwrap also ends a sandbox that has started. If the sandbox is still starting, bwrap's children would
      // survive and keep the output pipes open, so this code kills them too.
      const isAlive = child.exitCode === null && child.signalCode === null && child.pid !== undefined;
      const started = isAlive ? processesBelow(child.pid).slice(1) : [];
      if (inside !== undefined && space !== undefined && processSpace(inside) === space) started.push(inside);
      child.kill('SIGKILL');
      for (const pid of new Set(started)) endProcess(pid);
    },
    memory: () => (inside === undefined ? 0 : memoryOf(inside, bytes) + memoryOfFiles(inside, privateFolders)),
    ranOut: () => group?.ranOut() ?? false,
  });
  group?.remove();
  return { ...outcome, group: about };
}

/**
 * Starts a program with only the descriptors in `stdio`. Other descriptors that this process inherited are replaced by
 * /dev/null.
 */
function startedAlone(
  command: string,
  args: readonly string[],
  stdio: readonly 'pipe'[],
  options: SpawnOptions,
): ChildProcess {
  const others = inheritedDescriptors().filter(fd => fd >= stdio.length);
  if (others.length === 0) return spawn(command, args, { ...options, stdio: [...stdio] });
  const nowhere = openSync('/dev/null', 'r');
  try {
    const all = Array.from(
      { length: others.reduce((most, fd) => Math.max(most, fd), 0) + 1 },
      (_, fd) => stdio[fd] ?? (others.includes(fd) ? nowhere : 'ignore'),
    );
    return spawn(command, args, { ...options, stdio: all });
  } finally {
    closeSync(nowhere);
  }
}

/**
 * Descriptors above 2 that this process inherited and would pass on to a child. Node.js itself closes only a contiguous
 * range of descriptors that starts at 0.
 */
function inheritedDescriptors(): number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter(fd => {
      try {
        const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
        return fd > 2 && flags !== undefined && (parseInt(flags, 8) & O_CLOEXEC) === 0;
      } catch {
        return false; // the descriptor with which this folder is listed; already closed
      }
    });
}

/** Returns the first bwrap on the PATH; an absolute path is needed because bwrap starts with an empty environment. */
function bubblewrapPath(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter).filter(isAbsolute);
  return folders.map(folder => join(folder, 'bwrap')).find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** Whether every user may execute the file (or enter the folder) and enter all its parent folders. */
function isOpenToAll(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

const identity = (): { uid: number; gid: number } | undefined =>
  process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : undefined;
const prlimit = '/usr/bin/prlimit';

/**
 * Prefixes the command with prlimit, which sets the limits. The kernel counts all processes of the user against the
 * process limit, so this limit is set only in a separate user namespace.
 */
function limited(limits: Limits, boundAddresses: boolean, argv: readonly string[], isolated = true): string[] {
  const { seconds, megabytes } = limits;
  return [
    prlimit,
    `--data=${megabytes * mebibyte}`,
    ...(boundAddresses ? [`--as=${(megabytes + 256) * mebibyte}`] : []),
    ...(isolated ? [`--nproc=${processes}`] : []),
    `--cpu=${Math.ceil(seconds) + 1}`, // only programs that use several cores reach it before the wall time
    ...[`--fsize=${fileBytes}`, '--core=0', '--nofile=64', '--msgqueue=0', '--sigpending=256', '--', ...argv],
  ];
}

/**
 * Returns bwrap's arguments for an interpreter outside /usr. By default, the interpreter's whole folder is mounted. If
 * this folder contains user files (~/bin or ~/.local/bin), only the interpreter and its libraries are mounted.
 */
function interpreterFolders(home: string | undefined, interpreter: string): string[] {
  if (home === undefined || home.startsWith('/usr/')) return [];
  const user = homedir();
  const holds = (path: string) => `${path}/`.startsWith(home === '/' ? home : `${home}/`);
  if (!holds(user) && home !== join(user, '.local')) return ['--ro-bind', home, home];
  const libraries = ['lib', 'lib64'].map(name => join(home, name));
  return ['--ro-bind', interpreter, interpreter, ...libraries.flatMap(path => ['--ro-bind-try', path, path])];
}

/**
 * Returns bwrap's arguments. Descriptor 3 holds the program's source, and descriptor 4 holds the filter. bwrap writes
 * the sandbox's process ids to descriptor 5, and waits for the start signal on descriptor 6.
 */
function bubblewrap({ home, interpreter }: Program, command: readonly string[]): string[] {
  // Some systems have folders /bin and /lib; on others they are links into /usr.
  const roots = ['/bin', '/sbin', '/lib', '/lib64'].flatMap(path => {
    if (!existsSync(path)) return [];
    return lstatSync(path).isSymbolicLink() ? ['--symlink', readlinkSync(path), path] : ['--ro-bind', path, path];
  });
  const space = ['--size', String(fileBytes), '--tmpfs'];
  return [
    ...['--seccomp', '4', '--info-fd', '5', '--block-fd', '6'],
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
    ...interpreterFolders(home, interpreter),
    ...['--proc', '/proc', '--dev', '/dev', ...space, '/dev/shm', '--remount-ro', '/dev', ...space, '/tmp'],
    // Hides /proc/1. Process 1 of the sandbox is bwrap, which is not subject to the program's limits, and a program
    // could write to bwrap's memory through /proc.
    ...['--tmpfs', '/proc/1', '--remount-ro', '/proc/1'],
    // Hides the user's key rings and the machine's kernel command line.
    ...['/proc/keys', '/proc/key-users', '/proc/cmdline'].flatMap(path =>
      existsSync(path) ? ['--ro-bind', '/dev/null', path] : [],
    ),
    ...['--ro-bind-data', '3', programFile],
    ...['--remount-ro', '/', '--chdir', '/tmp', '--', ...command],
  ];
}

/** Returns the identifier of a process's PID namespace; undefined if the process has ended or access is refused. */
function processSpace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // the process has already ended
  }
}

interface Grip {
  /**
   * Resolves when the program starts; the program's time limit begins then. If absent, the time limit begins at once.
   */
  begun?: Promise<void>;
  /** Kills all processes of the program; may throw if they have already ended. */
  end(): void;
  /** Bytes of memory that the program uses. */
  memory(): number;
  /** Whether the kernel killed one of the program's processes because of the memory limit. */
  ranOut(): boolean;
}

function watched(child: ChildProcess, stdin: string, limits: Limits, grip: Grip): Promise<Outcome> {
  let by: Outcome['by'] = 'exit';
  const stop = (limit: Outcome['by']) => {
    if (by !== 'exit') return;
    by = limit;
    stopRest(grip);
  };
  const texts = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]!.setEncoding('utf8').on('data', (text: string) => {
      texts[name] += text;
      if (texts[name].length > outputBytes) stop('output');
    });
  }
  child.stdin!.on('error', () => undefined); // a program may exit without reading its input
  child.stdin!.end(stdin);
  let hasEnded = false;
  let timer = setTimeout(() => stop('time'), (grip.begun ? startSeconds : limits.seconds) * 1000);
  void grip.begun?.then(() => {
    if (hasEnded) return;
    clearTimeout(timer);
    timer = setTimeout(() => stop('time'), limits.seconds * 1000);
  });
  const watch = setInterval(() => {
    if (grip.memory() > limits.megabytes * mebibyte || grip.ranOut()) stop('memory');
  }, watchMs);
  return new Promise(resolve => {
    let drain: NodeJS.Timeout | undefined;
    const finish = (code: number | null) => {
      hasEnded = true;
      clearTimeout(timer);
      clearTimeout(drain);
      clearInterval(watch);
      if (by === 'exit' && grip.ranOut()) by = 'memory';
      resolve({ by, code, stdout: texts.stdout.slice(0, outputBytes), stderr: texts.stderr.slice(0, outputBytes) });
    };
    child.on('error', error => {
      texts.stderr += error.message;
      finish(null);
    });
    child.on('close', finish);
    child.on('exit', () => {
      stopRest(grip); // remaining processes would keep the output open
      drain = setTimeout(() => child.stdio.forEach(stream => stream?.destroy()), drainMs);
    });
  });
}

function stopRest({ end }: Grip): void {
  try {
    end();
  } catch {
    // all processes have already ended
  }
}
