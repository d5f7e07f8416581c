// Runs programs that a model wrote, by bubblewrap: namespaces of their own for processes, network, mounts, users, IPC and host name.
//
// Covered: no variable, key ring or descriptor of who starts them, also not by /proc; no network, not even the machine's own, and no sockets
// but connected pairs; a read-only root that holds /usr, the interpreter and nothing of the user's files or /etc; private /tmp and
// /dev/shm of 16 MiB; only own processes in /proc and for signals; no further namespaces, no capabilities, no terminal; system calls are
// filtered (system-calls.ts); wall and CPU time, data of a process, memory of all processes together (looked at every 50 ms, and bounded
// by the kernel where there is a control group), processes and threads, files and output. All is killed with its first process, with
// this one, or when a limit is reached. Started by root, programs run as nobody, since root is exempt from the limit of processes.
// Not covered: faults of the kernel itself behind the calls that are left, files below /usr that all may read, what /proc tells of the
// machine, the time that programs take from others, and, without a control group, a memory bomb's first 50 ms within the limits of its
// processes and what the kernel holds for them (buffers of pipes and sockets, mappings).
import { spawn, type ChildProcess, type SpawnOptions, type StdioOptions } from 'node:child_process';
import { accessSync, chmodSync, chownSync, closeSync, constants, existsSync, lstatSync, mkdtempSync, openSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs'; // prettier-ignore
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
const O_CLOEXEC = 0o2000000;
const nobody = 65534;
const watchMs = 50;
/** Seconds that bubblewrap may take to begin, which are no program's: a busy machine makes namespaces slowly. */
const startSeconds = 30;
/** How long outputs may stay open after the end of what was started. */
const drainMs = 2000;
const programFile = '/answer';
/** Folders that a program may write to, held in memory. */
const privateFolders = ['/tmp', '/dev/shm'];

/** What bounds programs on this machine, in words for a table. */
export interface Protection {
  namespaces: string;
  memory: string;
}

/**
 * What isolates programs on this machine, found out by running one.
 * @throws MissingDependency where programs cannot be isolated on this machine
 */
export async function requireIsolation(): Promise<Protection> {
  const refuse = (why: string): never => {
    throw new MissingDependency(
      `finds no isolation for the programs it runs (${why})`,
      'install bubblewrap on Linux (apt-get install bubblewrap) where user namespaces are allowed, or set env_config.isolation to none to run programs of the model with your own rights',
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
  const watch = `a look every ${watchMs} ms`;
  return {
    namespaces: 'namespaces and a filter of system calls',
    memory: group === undefined ? `${watch} and limits of each process` : `${group}, ${watch}`,
  };
}

/** Runs a program to its end or its limits; never rejects for anything that the program does. */
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
    // Root's processes, and with them their variables, are out of nobody's reach; an interpreter in root's own folders is too.
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

/** Runs a program in isolation; `group` says what the kernel bounded, where it did. */
async function isolated(program: Program, limits: Limits): Promise<Outcome & { group: string | undefined }> {
  const bytes = limits.megabytes * mebibyte;
  const argv = [program.interpreter, ...program.options, programFile];
  const command = bubblewrap(program, limited(limits, program.boundAddresses, argv));
  // bwrap is the first process of the sandbox, whose variables every program in it can read: it gets none.
  const pipes = Array.from({ length: 7 }, () => 'pipe' as const);
  const child = startedAlone(bubblewrapPath() ?? 'bwrap', command, pipes, { ...identity(), env: {}, cwd: '/' });
  const [source, filter, info, go] = child.stdio.slice(3) as [Writable, Writable, Readable, Writable];
  for (const stream of [source, filter, info, go]) stream.on('error', () => undefined); // bwrap may end before it reads
  source.end(program.source);
  filter.end(seccompFilter(filteredProcessor()!));
  let inside: number | undefined;
  /** The namespace of its processes: whoever has its number later is in another. */
  let space: string | undefined;
  let group: ControlGroup | undefined;
  let about: string | undefined;
  // bwrap says who the sandbox's first process is, and starts the program when it is told to.
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
      // bwrap's end is the end of its processes once they have begun. A kill before that would leave them waiting for it, with the outputs open.
      const isAlive = child.exitCode === null && child.signalCode === null && child.pid !== undefined;
      const started = isAlive ? processesBelow(child.pid!).slice(1) : [];
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

/** Starts a program with these descriptors and no others: those that this process was given itself lead nowhere in it. */
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
    return spawn(command, args, { ...options, stdio: all as StdioOptions });
  } finally {
    closeSync(nowhere);
  }
}

/** Descriptors that whoever started this process left open, which Node.js would pass on: it closes those in a row from 0 on alone. */
function inheritedDescriptors(): number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter(fd => {
      try {
        const flags = /^flags:\s+([0-7]+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1];
        return fd > 2 && flags !== undefined && (parseInt(flags, 8) & O_CLOEXEC) === 0;
      } catch {
        return false; // that of the folder itself
      }
    });
}

/** The first on the PATH: bwrap itself is started without one. */
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

/** Whether every user may read or run what a path names, and enter the folders on the way. */
function isOpenToAll(path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if ((statSync(at).mode & 0o001) === 0) return false;
    if (at === dirname(at)) return true;
  }
}

const identity = (): { uid: number; gid: number } | undefined =>
  process.getuid?.() === 0 ? { uid: nobody, gid: nobody } : undefined;
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
    ...[`--fsize=${fileBytes}`, '--core=0', '--nofile=64', '--msgqueue=0', '--sigpending=256', '--', ...argv],
  ];
}

/**
 * bwrap's arguments for an interpreter that is not below /usr. A folder that holds the user's own files too (an interpreter in ~/bin or
 * ~/.local/bin) is not shown: the interpreter and its libraries alone are.
 */
function interpreterFolders(home: string | undefined, interpreter: string): string[] {
  if (home === undefined || home.startsWith('/usr/')) return [];
  const user = homedir();
  const holds = (path: string) => `${path}/`.startsWith(home === '/' ? home : `${home}/`);
  if (!holds(user) && home !== join(user, '.local')) return ['--ro-bind', home, home];
  const libraries = ['lib', 'lib64'].map(name => join(home, name));
  return ['--ro-bind', interpreter, interpreter, ...libraries.flatMap(path => ['--ro-bind-try', path, path])];
}

/** bwrap's arguments. Descriptors: 3 the program's text, 4 the filter, 5 who runs inside, 6 the word to begin. */
function bubblewrap({ home, interpreter }: Program, command: readonly string[]): string[] {
  // /bin and /lib are folders on some systems and links into /usr on others.
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
    // bwrap is the first process, without the limits of a program, which could write its memory through /proc.
    ...['--tmpfs', '/proc/1', '--remount-ro', '/proc/1'],
    // Key rings are the user's, and the kernel's command line the machine's.
    ...['/proc/keys', '/proc/key-users', '/proc/cmdline'].flatMap(path =>
      existsSync(path) ? ['--ro-bind', '/dev/null', path] : [],
    ),
    ...['--ro-bind-data', '3', programFile],
    ...['--remount-ro', '/', '--chdir', '/tmp', '--', ...command],
  ];
}

/** Names the namespace of a process's number; undefined where it has ended or may not be looked at. */
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
    // it has ended already
  }
}

interface Grip {
  /** When the program begins, from where on its time counts; without it, at once. */
  begun?: Promise<void>;
  /** Ends all of a program's processes; may throw where they have ended. */
  end(): void;
  /** Bytes that it holds. */
  memory(): number;
  /** Whether the kernel has ended it for its memory. */
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
      stopRest(grip); // what it left behind would hold its output open
      drain = setTimeout(() => child.stdio.forEach(stream => stream?.destroy()), drainMs);
    });
  });
}

function stopRest({ end }: Grip): void {
  try {
    end();
  } catch {
    // all of it has ended already
  }
}
