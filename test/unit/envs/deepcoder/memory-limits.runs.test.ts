// Memory limits of programs: the external monitor, which must see everything a program starts, and control groups where
// available.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ControlGroup } from '../../../../envs/deepcoder/control-group';
import { memoryOf, memoryOfFiles, processesBelow } from '../../../../envs/deepcoder/memory-watch';
import { runnerOf } from '../../../../envs/deepcoder/programs';
import { isolationMissing } from './isolation';

const mebibyte = 2 ** 20;
const missing = await isolationMissing();

describe.skipIf(process.platform !== 'linux')('the external monitor', () => {
  let child: ChildProcess | undefined;
  afterEach(() => void child?.kill('SIGKILL'));

  /** Starts a program that prints a line once it holds its memory, and ends with its input. */
  async function started(source: string): Promise<number> {
    child = spawn(runnerOf('python', null)!.interpreter, ['-c', source], { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(child.stdout!, 'data');
    return child.pid!;
  }
  const sleeper = "import sys; held = bytearray(b'x') * (80 << 20); print(1, flush=True); sys.stdin.read()";

  test('sees the children of every thread', async () => {
    const pid = await started(`
import subprocess, sys, threading
def start():
    global child
    child = subprocess.Popen([sys.executable, "-c", """${sleeper}"""])
    done.wait()
done = threading.Event()
threading.Thread(target=start, daemon=True).start()
sys.stdin.read()`);
    expect(processesBelow(pid)).toHaveLength(2);
    expect(memoryOf(pid, 0)).toBeGreaterThan(80 * mebibyte);
  });

  test('counts pages shared by several processes once, where it matters', async () => {
    const pid = await started(`
import os, sys
held = bytearray(b"x") * (80 << 20)
for _ in range(4):
    if os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
print(1, flush=True)
sys.stdin.read()`);
    expect(memoryOf(pid, Infinity)).toBeGreaterThan(400 * mebibyte);
    expect(memoryOf(pid, 100 * mebibyte)).toBeLessThan(200 * mebibyte);
    expect(memoryOf(pid, 100 * mebibyte)).toBeGreaterThan(80 * mebibyte);
  });

  test("does not count the files of this machine's own folders, which a sandbox that is starting still sees", async () => {
    const pid = await started(sleeper);
    expect(memoryOfFiles(pid, ['/tmp', '/dev/shm'])).toBe(0);
  });

  test.skipIf(missing !== undefined)('counts the files of a folder that only the program has', async () => {
    const mounted = ['--dev-bind', '/', '/', '--tmpfs', '/tmp'];
    child = spawn('bwrap', [...mounted, '--', 'sh', '-c', 'for i in $(seq 1000); do : > /tmp/$i; done; echo; cat'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(child.stdout!, 'data');
    const [pid] = processesBelow(child.pid!).slice(-1);
    expect(memoryOfFiles(pid, ['/tmp'])).toBeGreaterThan(1000 * 1024);
  });

  test('counts an ended process as 0', async () => {
    const pid = await started('print(1, flush=True)');
    await once(child!, 'exit');
    expect(memoryOf(pid, 0)).toBe(0);
  });
});

describe('a control group', () => {
  let root: string;
  beforeEach(() => void (root = mkdtempSync(join(tmpdir(), 'ragen-groups-'))));
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  /** A file tree in place of /proc/self and the control group file systems. */
  function tree(own: string, mounts: string, files: Record<string, string>): void {
    for (const [path, text] of Object.entries({ 'proc/self/cgroup': own, 'proc/self/mountinfo': mounts, ...files })) {
      mkdirSync(join(root, path, '..'), { recursive: true });
      writeFileSync(join(root, path), text);
    }
  }
  const limits = { bytes: 300 * mebibyte, processes: 34 };
  const groupIn = (folder: string) => readdirSync(join(root, folder)).filter(name => name.startsWith('ragen-program-'));
  const mount = (at: string, type: string, options: string, from = '/') =>
    `30 20 0:27 ${from} ${at} rw,nosuid - ${type} ${type} rw,${options}\n`;

  test('of version 2 is created in the nearest group that delegates memory', () => {
    const folder = 'sys/fs/cgroup/user.slice/app.slice';
    tree('0::/user.slice/app.slice/editor.scope\n', mount('/sys/fs/cgroup', 'cgroup2', 'nsdelegate'), {
      'sys/fs/cgroup/cgroup.subtree_control': 'cpu memory pids',
      [`${folder}/cgroup.subtree_control`]: 'memory pids\n',
      [`${folder}/editor.scope/cgroup.subtree_control`]: '\n',
    });
    const group = ControlGroup.make(limits, root)!;
    const [name] = groupIn(folder);
    const value = (file: string) => readFileSync(join(root, folder, name, file), 'utf8');
    expect(['memory.max', 'pids.max', 'memory.oom.group'].map(value)).toEqual(['314572800', '34', '1']);
    expect(group.about).toBe('memory and number of processes by control groups (version 2)');
    expect(group.join(123)).toBe(true);
    expect(value('cgroup.procs')).toBe('123');
    expect(group.ranOut()).toBe(false);
    writeFileSync(join(root, folder, name, 'memory.events'), 'low 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 1\n');
    expect(group.ranOut()).toBe(true);
  });

  test('of version 1 is created in each hierarchy, below this process’s own', () => {
    tree(
      '8:pids:/\n4:cpu,memory:/docker/abc/inner\n0::/\n',
      mount('/cg/memory', 'cgroup', 'cpu,memory', '/docker/abc') +
        mount('/cg/pids', 'cgroup', 'pids') +
        mount('/cg/unified', 'cgroup2', ''),
      { 'cg/memory/inner/tasks': '', 'cg/pids/tasks': '', 'cg/unified/cgroup.subtree_control': '' },
    );
    const group = ControlGroup.make(limits, root)!;
    const [[memory], [pids]] = [groupIn('cg/memory/inner'), groupIn('cg/pids')];
    expect(readFileSync(join(root, 'cg/memory/inner', memory, 'memory.limit_in_bytes'), 'utf8')).toBe('314572800');
    expect(readFileSync(join(root, 'cg/pids', pids, 'pids.max'), 'utf8')).toBe('34');
    expect(group.about).toBe('memory and number of processes by control groups (version 1)');
    writeFileSync(join(root, 'cg/memory/inner', memory, 'memory.oom_control'), 'under_oom 0\noom_kill 1\n');
    expect(group.ranOut()).toBe(true);
  });

  test('is unavailable when memory is not delegated, the mount does not show this process’s group, or it cannot be created', () => {
    tree('0::/a\n', mount('/cg', 'cgroup2', ''), { 'cg/a/cgroup.subtree_control': 'cpu\n' });
    expect(ControlGroup.make(limits, root)).toBeUndefined();
    tree('4:memory:/elsewhere\n', mount('/cg', 'cgroup', 'memory', '/docker'), { 'cg/tasks': '' });
    expect(ControlGroup.make(limits, root)).toBeUndefined();
    tree('4:memory:/\n', mount('/no/such/folder', 'cgroup', 'memory'), {});
    expect(ControlGroup.make(limits, root)).toBeUndefined();
    tree('', '', {});
    expect(ControlGroup.make(limits, root)).toBeUndefined();
  });

  test('is removed with its program on machines that support it', async () => {
    const group = ControlGroup.make(limits);
    if (!group) return;
    const child = spawn('/bin/sleep', ['600'], { stdio: 'ignore' });
    expect(group.join(child.pid!)).toBe(true);
    const [path] = readFileSync(`/proc/${child.pid}/cgroup`, 'utf8').match(/\/ragen-program-[\w-]+/)!;
    child.kill('SIGKILL');
    await once(child, 'exit');
    group.remove();
    await expect.poll(() => existsSync(`/sys/fs/cgroup/memory${path}`)).toBe(false);
  });
});
