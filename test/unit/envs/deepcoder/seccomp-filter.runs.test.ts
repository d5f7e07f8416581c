// The filter's bytes, executed by an interpreter of the few instructions it uses, for both processors.
import { describe, expect, test } from 'vitest';
import { seccompFilter } from '../../../../envs/deepcoder/seccomp-filter';
import { auditArch, rulesFor, type Processor } from '../../../../envs/deepcoder/system-calls';

const [allowed, killed, EPERM, ENOSYS] = [0x7fff0000, 0x80000000, 0x50001, 0x50026];

/** The filter's result for a call. @throws Error for an instruction or a jump that seccomp would reject */
function answer(filter: Buffer, arch: number, number: number, args: readonly number[] = []): number {
  const data = Buffer.alloc(64);
  data.writeUInt32LE(number >>> 0, 0);
  data.writeUInt32LE(arch, 4);
  args.forEach((value, i) => data.writeBigUInt64LE(BigInt(value), 16 + 8 * i));
  let a = 0;
  for (let at = 0; ; at++) {
    if (8 * at >= filter.length) throw new Error(`it runs past its end at ${at}`);
    const [code, then, otherwise, k] = [
      filter.readUInt16LE(8 * at),
      filter[8 * at + 2],
      filter[8 * at + 3],
      filter.readUInt32LE(8 * at + 4),
    ];
    if (code === 0x20) a = data.readUInt32LE(k);
    else if (code === 0x54) a = (a & k) >>> 0;
    else if (code === 0x05) at += k;
    else if (code === 0x15) at += a === k ? then : otherwise;
    else if (code === 0x25) at += a > k ? then : otherwise;
    else if (code === 0x06) return k;
    else throw new Error(`code ${code}`);
  }
}

describe.each<[Processor, Record<string, number>]>([
  ['x64', { read: 0, clone: 56, socketpair: 53, ioctl: 16, fcntl: 72, prctl: 157, shmget: 29, getpid: 39 }],
  ['arm64', { read: 63, clone: 220, socketpair: 199, ioctl: 29, fcntl: 25, prctl: 167, shmget: 194, getpid: 172 }],
])('on %s', (processor, number) => {
  const filter = seccompFilter(processor);
  const call = (nr: number, ...args: number[]) => answer(filter, auditArch[processor], nr, args);

  test('needed calls are allowed, and each denied call is denied', () => {
    expect([number.read, number.getpid].map(nr => call(nr))).toEqual([allowed, allowed]);
    for (const { name, number, errno, when } of rulesFor(processor))
      if (!when) expect([name, call(number)]).toEqual([name, 0x50000 | errno]);
    const refused = new Set(rulesFor(processor).map(rule => rule.number));
    for (let nr = 0; nr <= 450; nr++) if (!refused.has(nr)) expect([nr, call(nr)]).toEqual([nr, allowed]);
  });

  test('calls of another architecture end the program; newer calls and those of x32 are unknown', () => {
    for (const arch of [0x40000003, auditArch[processor === 'x64' ? 'arm64' : 'x64']])
      expect(answer(filter, arch, number.read)).toBe(killed);
    for (const nr of [451, 2 ** 30, 2 ** 30 + number.getpid, 2 ** 32 - 1]) expect(call(nr)).toBe(ENOSYS);
    expect(call(435)).toBe(ENOSYS); // clone3
  });

  test('arguments decide for calls with both harmless and harmful uses', () => {
    const [SIGCHLD, NEWUSER, NEWNS] = [17, 0x10000000, 0x20000];
    expect([SIGCHLD, 0x3d0f00].map(flags => call(number.clone, flags))).toEqual([allowed, allowed]);
    expect([NEWUSER | SIGCHLD, NEWNS, 0x40000000].map(flags => call(number.clone, flags))).toEqual([
      EPERM,
      EPERM,
      EPERM,
    ]);
    const pairs = [
      [1, 1],
      [1, 1 | 0x80800],
      [1, 2],
      [1, 5],
      [2, 1],
      [16, 1],
    ];
    expect(pairs.map(args => call(number.socketpair, ...args))).toEqual([allowed, allowed, EPERM, EPERM, EPERM, EPERM]);
    // The kernel reads the lower half of a command: the upper half must not hide a denied one.
    const commands = [0x5401, 0x5412, 0x541c, 2 ** 32 + 0x5412];
    expect(commands.map(command => call(number.ioctl, 0, command))).toEqual([allowed, EPERM, EPERM, EPERM]);
    expect([3, 1031].map(command => call(number.fcntl, 0, command))).toEqual([allowed, EPERM]);
    expect([38, 22].map(option => call(number.prctl, option))).toEqual([allowed, EPERM]);
  });
});
