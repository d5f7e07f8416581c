// Assembles the seccomp filter for programs written by a model. `bwrap --seccomp` expects it as classic BPF. The filter
// is a linear program: it checks the architecture, then whether the call number is known, then the rules in order. A
// system call of another architecture kills the process. Sources: docs.kernel.org/userspace-api/seccomp_filter.html,
// linux/bpf_common.h.
// No package is used: no npm package assembles such filters, and libseccomp is native code.
import { auditArch, lastKnown, rulesFor, type Processor } from './system-calls';

const code = { load: 0x20, and: 0x54, jump: 0x05, jumpEqual: 0x15, jumpGreater: 0x25, return: 0x06 } as const;
const answer = { allow: 0x7fff0000, killProcess: 0x80000000, errno: (errno: number) => 0x00050000 | errno } as const;
const ENOSYS = 38;

/**
 * Byte offsets in `struct seccomp_data`. `argument(i)` is the offset of the lower half of argument i. The lower half
 * precedes the upper half, because both architectures are little-endian.
 */
const field = { number: 0, arch: 4, argument: (i: number) => 16 + 8 * i } as const;

interface Instruction {
  code: number;
  /** Number of instructions to skip if the comparison is true (`then`) or false (`otherwise`). */
  then: number;
  otherwise: number;
  value: number;
}

const load = (offset: number): Instruction => ({ code: code.load, then: 0, otherwise: 0, value: offset });
const end = (value: number): Instruction => ({ code: code.return, then: 0, otherwise: 0, value });
const jump = (by: number): Instruction => ({ code: code.jump, then: 0, otherwise: 0, value: by });
const ifEqual = (value: number, then: number, otherwise: number): Instruction => ({
  code: code.jumpEqual,
  then,
  otherwise,
  value,
});

/** This machine's architecture; undefined if there is no filter for it. */
export const filteredProcessor = (arch: string = process.arch): Processor | undefined =>
  arch === 'x64' || arch === 'arm64' ? arch : undefined;

/** Returns the filter as an array of `struct sock_filter`. */
export function seccompFilter(processor: Processor): Buffer {
  const program: Instruction[] = [
    load(field.arch),
    ifEqual(auditArch[processor], 1, 0),
    end(answer.killProcess),
    load(field.number),
    { code: code.jumpGreater, then: 0, otherwise: 1, value: lastKnown },
    end(answer.errno(ENOSYS)),
  ];
  for (const { number, errno, when } of rulesFor(processor)) {
    if (!when) {
      program.push(ifEqual(number, 0, 1), end(answer.errno(errno)));
      continue;
    }
    const { argument, mask, values, refuse } = when;
    const checks = [
      load(field.argument(argument)),
      { code: code.and, then: 0, otherwise: 0, value: mask },
      // a match skips the remaining comparisons and the instruction after them
      ...values.map((value, i) => ifEqual(value, values.length - i, 0)),
      ...(refuse === 'these' ? [jump(1)] : []),
      end(answer.errno(errno)),
      load(field.number), // the next rules compare the call number again
    ];
    program.push(ifEqual(number, 0, checks.length));
    for (const check of checks) program.push(check);
  }
  program.push(end(answer.allow));
  const bytes = Buffer.alloc(8 * program.length);
  program.forEach(({ code, then, otherwise, value }, i) => {
    bytes.writeUInt16LE(code, 8 * i);
    bytes.writeUInt8(then, 8 * i + 2);
    bytes.writeUInt8(otherwise, 8 * i + 3);
    bytes.writeUInt32LE(value, 8 * i + 4);
  });
  return bytes;
}
