// Memory available to a process, from files in the kernel's format.
import { mkdirSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { controlGroups, freeOfVmStat, machineMemory } from '../../../extension/node/machine-memory';
import { gibibytes } from '../../../extension/common/numbers';
import { temporaryFolder } from '../../support/temporary-folder';

const folder = temporaryFolder();
const write = (files: Record<string, string>): string => {
  for (const [name, text] of Object.entries(files)) {
    const file = join(folder(), name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, `${text}\n`);
  }
  return folder();
};

test('limits come from a version 2 control group and its parents; the page cache does not count as used', () => {
  const root = write({
    'proc/self/cgroup': '0::/jobs/mine',
    'sys/fs/cgroup/jobs/mine/memory.max': '8000',
    'sys/fs/cgroup/jobs/mine/memory.current': '6000',
    'sys/fs/cgroup/jobs/mine/memory.stat': 'anon 1000\nfile 5000\ninactive_file 3000\nactive_file 1500',
    'sys/fs/cgroup/jobs/memory.max': '9000',
    'sys/fs/cgroup/jobs/memory.current': '8500',
    'sys/fs/cgroup/jobs/memory.stat': 'inactive_file 0\nactive_file 0',
    'sys/fs/cgroup/memory.current': '9999', // the root has no limit
  });
  expect(controlGroups(root)).toEqual([
    { limit: 8000, left: 6500 },
    { limit: 9000, left: 500 },
  ]);
});

test('a group without a limit does not limit memory', () => {
  const root = write({
    'proc/self/cgroup': '0::/',
    'sys/fs/cgroup/memory.max': 'max',
    'sys/fs/cgroup/memory.current': '10',
  });
  expect(controlGroups(root)).toEqual([]);
  expect(controlGroups(join(root, 'nowhere'))).toEqual([]);
});

test('version 1 works in a container whose group is not under its reported path', () => {
  const root = write({
    'proc/self/cgroup': '4:cpu,cpuacct:/docker/abc\n3:memory:/docker/abc\n0::/',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '5000',
    'sys/fs/cgroup/memory/memory.usage_in_bytes': '4000',
    'sys/fs/cgroup/memory/memory.stat': 'inactive_file 9\ntotal_inactive_file 700\ntotal_active_file 300',
  });
  expect(controlGroups(root)).toEqual([{ limit: 5000, left: 2000 }]);
});

test('macOS counts reclaimable memory as free', () => {
  const said = `Mach Virtual Memory Statistics: (page size of 16384 bytes)
Pages free:                               10.
Pages active:                            999.
Pages inactive:                          200.
Pages speculative:                        30.
Pages purgeable:                           4.`;
  expect(freeOfVmStat(said)).toBe(244 * 16384);
});

test('this machine has plausible values', () => {
  const { total, free, limit, available } = machineMemory();
  expect(total).toBe(totalmem());
  expect(available).toBeGreaterThan(0);
  expect(available).toBeLessThanOrEqual(Math.min(free, limit ?? total));
});

test('bytes are printed with units', () => {
  expect([1, 2 ** 20, 2 ** 30 - 1, 1.25 * 2 ** 30].map(gibibytes)).toEqual(['1 MiB', '1 MiB', '1024 MiB', '1.3 GiB']);
});
