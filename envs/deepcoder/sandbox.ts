// Runs programs written by a model under bubblewrap, in separate namespaces for processes, network, mounts, users, IPC
// and host name.
//
// Covered: no variable, key ring or descriptor of the parent, not even through /proc; no network, not even loopback,
// and no sockets except connected pairs; a read-only root with /usr and the interpreter, with none of the user's files,
// and of /etc only ld.so.cache and alternatives; private /tmp and /dev/shm of 16 MiB; only the sandbox's own processes
// in /proc and for signals; no nested namespaces, no capabilities, no terminal; a system call filter (system-calls.ts).
// Limits: wall and CPU time, data segment of a process, total memory of all processes (polled every 50 ms, and limited
// by the kernel if there is a cgroup), processes and threads, file size and output. All processes are killed when the
// first one ends, when this process ends, or when a limit is reached. If this process is root, programs run as nobody,
// because root is exempt from the process limit. Not covered: kernel bugs reachable through the remaining system calls,
// world-readable files in /usr, machine information in /proc, CPU time taken from others, and, without a cgroup, the
// first 50 ms of a memory bomb within the per-process limits and kernel memory (pipe and socket buffers, mappings).
// Ours, around bubblewrap: npm's sandboxes (isolated-vm, vm2) confine JavaScript, not programs of other languages.
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
  /** Wall and CPU time of one program. */
  seconds: number;
  /** Data segment of each process, and total memory of all processes. */
  megabytes: number;
}

export interface Outcome {
  /** How the program ended: by itself, or at the named limit. */
  by: 'exit' | 'time' | 'memory' | 'output';
  /** Exit code; null if a signal ended the program. */
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Program {
  /** Absolute path of the interpreter. */
  interpreter: string;
  /** Options placed before the program's file. */
  options: readonly string[];
  /** A folder that the interpreter needs in addition to /usr. */
  home?: string;
  /**
   * Whether to limit the address space too, which covers shared memory; for interpreters that reserve little address
   * space.
   */
  boundAddresses: boolean;
  source: string;
  stdin: string;
}

export type Isolation = 'bubblewrap' | 'none';

const mebibyte = 2 ** 20;
const outputBytes = mebibyte;
const fileBytes = 16 * mebibyte;
/** Enough for the threads of an interpreter. */
const processes = 32;
const O_CLOEXEC = 0o2000000;
const nobody = 65534;
const watchMs = 50;
/**
 * Seconds that bubblewrap may take to start, not counted as the program's time: creating namespaces is slow on a busy
 * machine.
 */
const startSeconds = 30;
/** How long output streams may stay open after the process has ended. */
const drainMs = 2000;
const programFile = '/answer';
/** Writable folders of a program, held in memory. */
const privateFolders = ['/tmp', '/dev/shm'];

/** What limits programs on this machine, formatted for a table. */
export interface Protection {
  namespaces: string;
  memory: string;
}

/**
 * Returns what isolates programs on this machine, determined by running one.
 * @throws MissingDependency if programs cannot be isolated on this machine
 */
export async function requireIsolation(): Promise<Protection> {
  const refuse = (why: string): never => {
    throw new MissingDependency(
      `finds no isolation for the programs it runs (${why})`,
      'install bubblewrap on Linux (apt-get install bubblewrap) where user namespaces are allowed, or set env_config.isolation to none to run programs of the model with your own user permissions',
    );
  };
  if (bubblewrapPath() === undefined) return refuse('there is no bwrap');
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
    namespaces: 'namespaces and a filter of system calls',
    memory: group === undefined ? `${watch} and limits of each process` : `${group}, ${watch}`,
  };
}

/** Runs a program until it ends or reaches a limit. Never rejects because of the program's behaviour. */
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
    // As nobody, the program cannot access root's processes and their variables. That needs an interpreter outside
    // root's own folders.
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

/** Runs a program in isolation; `group` describes the kernel's limits, if there are any. */
async function isolated(program: Program, limits: Limits): Promise<Outcome & { group: string | undefined }> {
  const bytes = limits.megabytes * mebibyte;
  const argv = [program.interpreter, ...program.options, programFile];
  const command = bubblewrap(program, limited(limits, program.boundAddresses, argv));
  // bwrap is the first process of the sandbox, and every program in it can read its variables, so it gets none.
  const pipes = Array.from({ length: 7 }, () => 'pipe' as const);
  const child = startedAlone(bubblewrapPath() ?? 'bwrap', command, pipes, { ...identity(), env: {}, cwd: '/' });
  const [source, filter, info, go] = child.stdio.slice(3) as [Writable, Writable, Readable, Writable];
  for (const stream of [source, filter, info, go]) stream.on('error', () => undefined); // bwrap may exit early
  source.end(program.source);
  filter.end(seccompFilter(filteredProcessor()!));
  let inside: number | undefined;
  /** PID namespace of the sandbox. A later process with the same id has another one. */
  let space: string | undefined;
  let group: ControlGroup | undefined;
  let about: string | undefined;
  // bwrap reports the id of the sandbox's first process on `info` and starts the program after a byte on `go`.
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
      // Killing bwrap ends a sandbox that has started. While it starts, bwrap's children would survive and keep the
      // output pipes open, so they are killed too.
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

/** Starts a program with these descriptors only. Descriptors that this process inherited are replaced by /dev/null. */
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

/** Descriptors above 2 that this process inherited and would pass on: Node.js closes only a contiguous range from 0. */
function inheritedDescriptors(): number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter(fd => {
      try {
        const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
        return fd > 2 && flags !== undefined && (parseInt(flags, 8) & O_CLOEXEC) === 0;
      } catch {
        return false; // the descriptor of the folder itself
      }
    });
}

/** The first bwrap on the PATH; an absolute path is needed because bwrap starts with an empty environment. */
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

/** Whether every user may execute a file or enter a folder, and enter all folders above it. */
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
 * A command under prlimit's limits. The process limit counts all processes of the user, so it is set only inside a
 * namespace.
 */
function limited(limits: Limits, boundAddresses: boolean, argv: readonly string[], isolated = true): string[] {
  const { seconds, megabytes } = limits;
  return [
    prlimit,
    `--data=${megabytes * mebibyte}`,
    ...(boundAddresses ? [`--as=${(megabytes + 256) * mebibyte}`] : []),
    ...(isolated ? [`--nproc=${processes}`] : []),
    `--cpu=${Math.ceil(seconds) + 1}`, // wall time ends the program first, unless it uses several cores
    ...[`--fsize=${fileBytes}`, '--core=0', '--nofile=64', '--msgqueue=0', '--sigpending=256', '--', ...argv],
  ];
}

/**
 * bwrap's arguments for an interpreter outside /usr. If its folder also holds files of the user (an interpreter in
 * ~/bin or ~/.local/bin), only the interpreter and its libraries are mounted.
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
 * bwrap's arguments. Descriptors: 3 the program's source, 4 the filter, 5 the ids of the sandbox, 6 the start signal.
 */
function bubblewrap({ home, interpreter }: Program, command: readonly string[]): string[] {
  // /bin and /lib are folders on some systems, links into /usr on others.
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
    // bwrap is process 1 and has none of the program's limits. Through /proc a program could write to its memory.
    ...['--tmpfs', '/proc/1', '--remount-ro', '/proc/1'],
    // Key rings belong to the user, the kernel command line to the machine.
    ...['/proc/keys', '/proc/key-users', '/proc/cmdline'].flatMap(path =>
      existsSync(path) ? ['--ro-bind', '/dev/null', path] : [],
    ),
    ...['--ro-bind-data', '3', programFile],
    ...['--remount-ro', '/', '--chdir', '/tmp', '--', ...command],
  ];
}

/** Identifies the PID namespace of a process; undefined if the process has ended or may not be inspected. */
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
  /** Resolves when the program starts and its time limit begins; if absent, it starts at once. */
  begun?: Promise<void>;
  /** Kills all processes of the program; may throw if they have ended. */
  end(): void;
  /** Bytes of memory in use. */
  memory(): number;
  /** Whether the kernel killed a process for exceeding the memory limit. */
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
  child.stdin!.on('error', () => undefined); // a program need not read its input
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
