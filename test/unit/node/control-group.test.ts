// Control groups, in a file tree that looks like the kernel's, and with real groups where this machine and user have
// them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { ControlGroup } from '../../../extension/node/control-group';

const linux = process.platform === 'linux';
const made: string[] = [];
afterAll(() => made.forEach(folder => rmSync(folder, { recursive: true, force: true })));

/** A root with these files; groups created in it get none of the kernel's files. */
function rootWith(files: Record<string, string>): string {
  const root = mkdtempSync(join(tmpdir(), 'ragen-groups-'));
  made.push(root);
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  mkdirSync(join(root, 'proc/self/ns'), { recursive: true });
  symlinkSync('pid:[77]', join(root, 'proc/self/ns/pid'));
  return root;
}

test.runIf(linux)('no group is created without cgroups or when the controller is not delegated', () => {
  expect(ControlGroup.create(2 ** 30, rootWith({}))).toBeUndefined();
  const files = { 'proc/self/cgroup': '0::/a/b\n', 'sys/fs/cgroup/a/cgroup.subtree_control': 'pids\n' };
  expect(ControlGroup.create(2 ** 30, rootWith(files))).toBeUndefined();
});

test.runIf(linux)('a folder without the kernel’s files is not used as a group, and is removed', () => {
  const files = { 'proc/self/cgroup': '0::/a/b\n', 'sys/fs/cgroup/a/cgroup.subtree_control': 'cpu memory pids\n' };
  const root = rootWith(files);
  expect(ControlGroup.create(2 ** 30, root)).toBeUndefined();
  expect(readdirSync(join(root, 'sys/fs/cgroup/a'))).toEqual(['cgroup.subtree_control']);
});

test.runIf(linux)(
  'a real group contains a process’s children, counts and ends them',
  { timeout: 30_000 },
  async context => {
    const group = ControlGroup.create(2 ** 30);
    if (!group) return context.skip(); // this user may not create groups here
    const [abandonedPid] = [2 ** 22 + 1];
    const abandoned = group.folder.replace(/-\d+-[0-9a-f]+$/, `-${abandonedPid}-00`);
    mkdirSync(abandoned);
    const child = spawn(
      'sh',
      [
        '-c',
        'read line; text=$(head -c 4000000 /dev/zero | tr "\\0" x); sleep 1000 & setsid sleep 1000 & echo started; wait',
      ],
      { stdio: ['pipe', 'pipe', 'inherit'], env: {} },
    );
    const ended = once(child, 'exit');
    expect(group.add(child.pid!)).toBe(true);
    child.stdin.write('go\n');
    await once(child.stdout, 'data');
    await expect.poll(() => group.pids.length).toBe(3);
    expect(group.bytes).toBeGreaterThan(1_000_000);
    expect(group.outOfMemory).toBe(false);
    expect(group.remove()).toBe(false);
    group.end();
    await ended;
    await expect.poll(() => group.remove()).toBe(true);
    const next = ControlGroup.create(2 ** 30)!;
    expect(existsSync(abandoned)).toBe(false);
    next.remove();
  },
);
