// Programs that try to escape, to read foreign data, or to run forever: all must fail and leave nothing behind.
import { spawn, type ChildProcess } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  mkdirSync,
  openSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  chmodSync,
} from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { buildSync } from 'esbuild';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { runnerOf, type Language } from '../../../../envs/deepcoder/programs';
import { runProgram, type Outcome, type Program } from '../../../../envs/deepcoder/sandbox';
import { isolationMissing } from './isolation';

const missing = await isolationMissing();
/** Time limits in seconds, for programs that must end by themselves and for those that never do. */
const [enough, little] = [5, 1];

/** An option without effect that marks these programs among the machine's processes. */
const badge = { python: ['-X', 'escapee'], javascript: ['--title=escapee'] };

function run(source: string, language: Language = 'python', stdin = '', seconds = little): Promise<Outcome> {
  const runner = runnerOf(language, null)!;
  const program = { ...runner, options: [...runner.options, ...badge[language]], source, stdin };
  return runProgram(program, { seconds, megabytes: 256 }, 'bubblewrap');
}
/** Output of a program that must exit with code 0. */
async function feedback(source: string, language: Language = 'python'): Promise<string> {
  const outcome = await run(source, language, '', enough);
  expect([outcome.by, outcome.code, outcome.stderr]).toEqual(['exit', 0, '']);
  return outcome.stdout.trim();
}
/** Ids of marked processes that are still running. */
const leftBehind = () =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('escapee');
      } catch {
        return false;
      }
    });

describe.skipIf(missing !== undefined)(`a program in isolation${missing ? ` (skipped: it ${missing})` : ''}`, () => {
  let folder: string;
  let server: Server;
  let port: number;
  let calls = 0;
  let bystander: ChildProcess;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'ragen-escape-'));
    chmodSync(folder, 0o777);
    writeFileSync(join(folder, 'secret'), 'of the user', { mode: 0o666 });
    process.env.RAGEN_TEST_SECRET = 'of the environment';
    server = createServer(socket => {
      calls++;
      socket.end('hello');
    });
    await new Promise<void>(done => server.listen(0, '127.0.0.1', done));
    port = (server.address() as AddressInfo).port;
    const identity = process.getuid!() === 0 ? { uid: 65534, gid: 65534 } : {};
    bystander = spawn('/bin/sleep', ['600'], { stdio: 'ignore', ...identity }); // with the same user id as the programs
  });
  afterAll(() => {
    delete process.env.RAGEN_TEST_SECRET;
    server.close();
    bystander.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(async () => {
    await expect.poll(leftBehind, { timeout: 10_000 }).toEqual([]);
    expect(bystander.exitCode ?? bystander.signalCode).toBeNull();
  });

  test('runs with input, output and exit codes, in both languages', async () => {
    expect(await run('import sys\nprint(input()[::-1])\nsys.exit(3)', 'python', 'abc\n', enough)).toEqual({
      by: 'exit',
      code: 3,
      stdout: 'cba\n',
      stderr: '',
    });
    expect(await feedback('console.log([1, 2].map(x => x * 2).join())', 'javascript')).toBe('2,4');
  });

  test('reaches no network, not even localhost', async () => {
    const attempt = `
import socket
def reach(*address):
    try:
        socket.create_connection(address, 1).recv(9)
        return "reached"
    except OSError:
        return "failed"
print(reach("127.0.0.1", ${port}), reach("1.1.1.1", 53))
print([line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:]])`;
    expect(await feedback(attempt)).toBe("failed failed\n['lo']");
    const script = `require('net').connect(${port}, '127.0.0.1').on('connect', () => console.log('reached')).on('error', () => console.log('failed'))`;
    expect(await feedback(script, 'javascript')).toBe('failed');
    expect(calls).toBe(0);
  });

  test('sees no foreign file and no variable, and writes only in its own /tmp', async () => {
    const attempt = `
import os
def tried(act):
    try:
        return act()
    except OSError as error:
        return type(error).__name__
secret = ${JSON.stringify(join(folder, 'secret'))}
print(tried(lambda: open(secret).read()), tried(lambda: open("/etc/passwd").read()), tried(lambda: os.listdir("/root")), tried(lambda: os.listdir("/home")))
print("RAGEN_TEST_SECRET" in os.environ)
for path in [secret, "/usr/bin/x", "/x", "/answer", "/dev/x", "/proc/sys/kernel/hostname", "/etc/x"]:
    print(tried(lambda: open(path, "w").write("x")), end=" ")
open("/tmp/mine", "w").write("x")
print(os.listdir("/tmp"))`;
    const [reads, variables, writes] = (await feedback(attempt)).split('\n');
    expect(reads).toBe('FileNotFoundError FileNotFoundError FileNotFoundError FileNotFoundError');
    expect(variables).toBe('False');
    expect(writes).toMatch(/^((OSError|PermissionError|FileNotFoundError) ){7}\['mine'\]$/);
    expect(readFileSync(join(folder, 'secret'), 'utf8')).toBe('of the user');
    expect(await feedback('import os\nprint(os.listdir("/tmp"))')).toBe('[]');
  });

  test('finds no variable of its parent in any process, no descriptor and no key ring', async () => {
    const attempt = `
import os
def read(path):
    try:
        return open(path).read()
    except OSError:
        return ""
pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
print(len(pids), sorted({entry.split("=")[0] for pid in pids for entry in read(f"/proc/{pid}/environ").split("\\0") if entry}))
print([os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}")])
print([read(f"/proc/{name}") for name in ["keys", "key-users", "cmdline"]])`;
    expect((await feedback(attempt)).split('\n')).toEqual(["2 ['HOME', 'LANG', 'PATH', 'PWD']", '[]', "['', '', '']"]);
  });

  test('neither reads nor writes the memory of the sandbox’s first process, which has no limits', async () => {
    const attempt = `
def opened(path, mode):
    try:
        open(path, mode, 0).close()
        return "opened"
    except OSError:
        return "failed"
print([opened(f"/proc/1/{name}", mode) for name in ["mem", "task/1/mem", "maps", "x"] for mode in ["rb", "r+b", "wb"]])`;
    expect(await feedback(attempt)).toBe(`[${Array(12).fill("'failed'").join(', ')}]`);
  });

  test('sees only the interpreter and its libraries of the user’s files', async () => {
    const before = process.env.HOME;
    const user = mkdtempSync('/var/tmp/ragen-escape-'); // /tmp is private to the program
    chmodSync(user, 0o755);
    process.env.HOME = user;
    try {
      for (const prefix of [user, join(user, '.local')]) {
        const [interpreter, library, secret] = ['bin/sh', 'lib/of-it', 'secret'].map(name => join(prefix, name));
        for (const path of [interpreter, library]) mkdirSync(dirname(path), { recursive: true });
        copyFileSync('/bin/sh', interpreter);
        writeFileSync(library, 'library');
        writeFileSync(secret, 'of the user');
        const source = `cat ${library} ${secret} ${join(user, 'secret')} 2>/dev/null; true`;
        const program = { interpreter, home: prefix, options: [], boundAddresses: true, source, stdin: '' };
        const outcome = await runProgram(program, { seconds: enough, megabytes: 256 }, 'bubblewrap');
        expect([outcome.code, outcome.stdout]).toEqual([0, 'library']);
      }
    } finally {
      process.env.HOME = before;
      rmSync(user, { recursive: true, force: true });
    }
  });

  test('inherits no descriptor that its parent was given', async () => {
    const bundle = join(folder, 'run.cjs');
    const contents = `
import { runnerOf } from './programs';
import { runProgram } from './sandbox';
const program = { ...runnerOf('python', null), source: 'import os; print(os.readlink("/proc/self/fd/89"))', stdin: '' };
for (const isolation of ['bubblewrap', 'none'])
  void runProgram(program, { seconds: 5, megabytes: 256 }, isolation).then(({ stdout, stderr }) => console.log(stdout + stderr));`;
    const resolveDir = resolve(__dirname, '../../../../envs/deepcoder');
    buildSync({ stdin: { contents, resolveDir }, bundle: true, platform: 'node', outfile: bundle });
    const secret = openSync(join(folder, 'secret'), 'r');
    try {
      const given = Array.from({ length: 90 }, (_, fd) => (fd === 89 ? secret : fd === 1 ? 'pipe' : 'ignore'));
      const starter = spawn(process.execPath, [bundle], { stdio: given });
      expect((await text(starter.stdout!)).trim().split(/\s+/)).toEqual(['/dev/null', '/dev/null']);
    } finally {
      closeSync(secret);
    }
  });

  test('is denied system calls that bypass its limits', async () => {
    const calls = {
      add_key: [248, 217],
      request_key: [249, 218],
      keyctl: [250, 219],
      shmget: [29, 194],
      msgget: [68, 186],
      semget: [64, 190],
      mq_open: [240, 180],
      memfd_create: [319, 279],
      memfd_secret: [447, 447],
      io_uring_setup: [425, 425],
      userfaultfd: [323, 282],
      bpf: [321, 280],
      perf_event_open: [298, 241],
      ptrace: [101, 117],
      process_vm_readv: [310, 270],
      mount: [165, 40],
      setns: [308, 268],
      unshare: [272, 97],
    };
    const numbers = Object.values(calls).map(([x64, arm64]) => (process.arch === 'arm64' ? arm64 : x64));
    const attempt = `
import ctypes, errno, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(number, *arguments)
    return errno.errorcode.get(ctypes.get_errno())
print({call(number, 0, 0, 0, 0, 0) for number in ${JSON.stringify(numbers)}})
print(call(435, 0, 0), call(451, 0), call(600, 0), call(0x40000000 + 39, 0))
def tried(act):
    try:
        act()
        return "done"
    except OSError as error:
        return errno.errorcode[error.errno]
families = [getattr(socket, name) for name in dir(socket) if name.startswith("AF_")] + [40]
print({tried(lambda: socket.socket(family, kind)) for family in families for kind in [1, 2, 3, 5]})
print(tried(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)), tried(lambda: socket.socketpair()))
print(tried(lambda: fcntl.ioctl(0, 0x5412, b"x")), tried(lambda: fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)))`;
    expect((await feedback(attempt)).split('\n')).toEqual([
      "{'EPERM'}",
      'ENOSYS ENOSYS ENOSYS ENOSYS',
      "{'EPERM'}",
      'EPERM done',
      'EPERM EPERM',
    ]);
  });

  test('can use threads, children, pipes and event loops', async () => {
    const attempt = `
import asyncio, subprocess
from concurrent.futures import ThreadPoolExecutor
async def main():
    await asyncio.sleep(0.01)
    return 1
def square(n): return n * n
print(asyncio.run(main()), subprocess.check_output(["echo", "2"]).decode().strip())
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(square, range(3))))`;
    expect(await feedback(attempt)).toBe('1 2\n[0, 1, 4]');
    const script = `require('node:child_process').execFile('echo', ['3'], (error, out) => console.log(error ?? out.trim()));`;
    expect(await feedback(script, 'javascript')).toBe('3');
  });

  test('sees only its own processes, and cannot signal others', async () => {
    const attempt = `
import os, signal
def tried(act):
    try:
        return act() or "done"
    except OSError as error:
        return type(error).__name__
others = [pid for pid in os.listdir("/proc") if pid.isdigit()]
print(len(others) <= 3, tried(lambda: open("/proc/${process.pid}/environ").read()), tried(lambda: os.kill(${process.pid}, 9)), tried(lambda: os.kill(${bystander.pid}, 9)))`;
    expect(await feedback(attempt)).toBe('True FileNotFoundError ProcessLookupError ProcessLookupError');
    for (const target of ['os.getppid()', '1', '-1']) await run(`import os\nos.kill(${target}, 9)`);
  });

  test('gets no new namespaces, mounts or other identity', async () => {
    const attempt = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.unshare(0x10000000), libc.unshare(0x20000), libc.mount(b"none", b"/tmp", b"tmpfs", 0, None), libc.ptrace(16, ${bystander.pid}, 0, 0))
def tried(act):
    try:
        return act() or "done"
    except OSError as error:
        return type(error).__name__
print(tried(lambda: os.setuid(0)), tried(lambda: os.chroot("/tmp")))
print([line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapEff", "CapPrm", "CapBnd", "NoNewPrivs"))])`;
    const none = '0000000000000000';
    expect(await feedback(attempt)).toBe(
      `-1 -1 -1 -1\nOSError PermissionError\n['${none}', '${none}', '${none}', '1']`,
    );
  });

  test.each([
    ['python', 'while True: pass'],
    ['javascript', 'for (;;);'],
    [
      'python',
      'import signal, time\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except OSError: pass\ntime.sleep(600)', // longer than a test may take
    ],
  ] as const)('is ended when it runs forever in %s: %s', async (language, source) => {
    expect((await run(source, language)).by).toBe('time');
  });

  test('cannot grow with a fork bomb, which is ended', async () => {
    const bomb = `
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            time.sleep(60)
        made += 1
except OSError:
    print(made, flush=True)
time.sleep(60)`;
    const outcome = await run(bomb);
    expect(outcome.by).toBe('time');
    expect(Number(outcome.stdout)).toBeLessThan(32);
    expect((await run('import os\nwhile True:\n    try: os.fork()\n    except OSError: pass')).by).not.toBe('exit');
    const forker = `const { spawn } = require('child_process'); for (let i = 0; i < 200; i++) try { spawn('/bin/sleep', ['60']).on('error', () => {}); } catch {}`;
    expect((await run(forker, 'javascript')).code).not.toBe(0);
  });

  test.each([
    ['grown in one process', 'python', 'held = []\nwhile True: held.append(bytearray(1 << 20))'],
    ['taken at once', 'python', 'held = bytearray(2 << 30)'],
    [
      'shared',
      'python',
      'import mmap\nheld = []\nwhile True:\n    held.append(mmap.mmap(-1, 16 << 20))\n    held[-1].write(b"x" * (16 << 20))',
    ],
    [
      'of many processes',
      'python',
      'import os, time\nfor _ in range(8): os.fork()\nheld = bytearray(b"x") * (100 << 20)\ntime.sleep(60)',
    ],
    [
      'of the children of a thread',
      'python',
      'import subprocess, sys, threading, time\ndef start():\n    for _ in range(6): subprocess.Popen([sys.executable, "-c", "import time; held = bytearray(b\'x\') * (120 << 20); time.sleep(60)"])\n    time.sleep(60)\nthreading.Thread(target=start).start()',
    ],
    ['of names of files', 'python', 'import os\nn = 0\nwhile True:\n    os.mkdir(f"/tmp/{n}")\n    n += 1'],
    ['in buffers', 'javascript', 'const held = []; for (;;) held.push(Buffer.alloc(1 << 20, 1));'],
    ['in objects', 'javascript', 'const held = []; for (;;) held.push(new Array(1e5).fill(1.5));'],
  ] as const)('cannot exhaust memory (%s) in %s', async (_, language, source) => {
    const { by, code } = await run(source, language, '', enough);
    expect(by === 'memory' || (by === 'exit' && code !== 0)).toBe(true);
  });

  test('has bounded files and output', async () => {
    const fill = `
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
wrote = 0
for folder in ["/tmp", "/dev/shm"]:
    for i in range(8):
        try:
            with open(f"{folder}/{i}", "wb", buffering=0) as file:
                while True: wrote += file.write(bytes(1 << 20))
        except OSError: pass
print(wrote >> 20)`;
    expect(Number(await feedback(fill))).toBeLessThanOrEqual(32);
    const flood = await run('while True: print("x" * 9999)');
    expect([flood.by, flood.stdout.length]).toEqual(['output', 1 << 20]);
  });

  test('is ended at its time limit, also while the sandbox starts', async () => {
    const program: Program = {
      interpreter: '/usr/bin/sh',
      options: [],
      boundAddresses: true,
      source: 'sleep 100',
      stdin: '',
    };
    for (let ms = 0; ms < 40; ms++) {
      const { by } = await runProgram(program, { seconds: ms / 1000, megabytes: 64 }, 'bubblewrap');
      expect([ms, by]).toEqual([ms, 'time']);
    }
  });

  test('leaves no process behind', async () => {
    const daemon = `
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600) # holds the output open
    os._exit(0)
os.wait()
print("gone")`;
    expect(await feedback(daemon)).toBe('gone'); // by its exit: the daemon was not waited for
  });
});

test.each<[Language, string]>([
  ['python', 'import os\nprint(sorted(os.environ))'],
  ['javascript', 'process.stdout.write(Object.keys(process.env).sort().join())'],
])('without isolation a program has the user’s rights, but not the user’s variables: %s', async (language, source) => {
  process.env.RAGEN_TEST_SECRET = 'of the environment';
  const program = { ...runnerOf(language, null)!, source, stdin: '' };
  const outcome = await runProgram(program, { seconds: enough, megabytes: 256 }, 'none');
  expect([outcome.by, outcome.code, outcome.stderr]).toEqual(['exit', 0, '']);
  expect(outcome.stdout).toContain('PATH');
  expect(outcome.stdout).not.toContain('RAGEN_TEST_SECRET');
});

test.skipIf(process.getuid?.() !== 0)(
  'without isolation, programs of root run as nobody and cannot read root’s variables',
  async () => {
    const source = `
import os
def read(pid):
    try:
        return open(f"/proc/{pid}/environ").read()
    except OSError as error:
        return type(error).__name__
print(os.getuid(), {read(pid) for pid in [os.getppid(), ${process.pid}]})`;
    const program = { ...runnerOf('python', null)!, source, stdin: '' };
    const { stdout } = await runProgram(program, { seconds: enough, megabytes: 256 }, 'none');
    expect(stdout.trim()).toBe("65534 {'PermissionError'}");
  },
);
