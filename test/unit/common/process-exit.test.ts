// Explanations of process exits, against real exits: each signal is sent to a child of this test.
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { explainExit } from '../../../extension/common/process-exit';

const memory = /memory.*: lower the micro-batch sizes or max_model_len.*quantised model/;

describe('signals', () => {
  test.each([
    ['SIGKILL', 137, memory],
    ['SIGTRAP', 133, /Electron.*: use Node 20 or newer.*ragen\.nodePath/],
    ['SIGABRT', 134, /onnxruntime.*heap is full: lower the micro-batch sizes.*end of the log/],
    ['SIGSEGV', 139, /native code, most likely onnxruntime.*: reinstall the packages/],
    ['SIGBUS', 135, /memory-mapped file.*: check the model folder and the disk/],
    ['SIGILL', 132, /instruction.*processor.*AVX2/],
    ['SIGFPE', 136, /arithmetic error in native code/],
    ['SIGTERM', 143, /by another process.*: resume the run/],
    ['SIGINT', 130, /interrupted.*: resume the run/],
    ['SIGHUP', 129, /terminal.*--detach/],
    ['SIGXCPU', 152, /ulimit -t/],
    ['SIGXFSZ', 153, /ulimit -f/],
    ['SIGSYS', 159, /not permitted here.*sandbox/],
  ] as const)('%s and exit code %i have the same explanation', (signal, code, message) => {
    const bySignal = explainExit(null, signal);
    expect(bySignal).toMatch(message);
    expect(bySignal).toContain(signal);
    expect(explainExit(code, null)).toBe(`${bySignal} (exit code ${code})`);
  });

  test.skipIf(process.platform !== 'linux')("the numbers equal the shell's", () => {
    for (const signal of ['KILL', 'TRAP', 'ABRT', 'SEGV', 'BUS', 'ILL', 'FPE', 'TERM', 'XCPU', 'XFSZ', 'SYS']) {
      // the inner shell dies by the signal, the outer one exits with its code
      const { status } = spawnSync('/bin/sh', ['-c', `ulimit -c 0; sh -c 'kill -${signal} $$'; exit $?`]);
      expect(explainExit(status, null)).toBe(`${explainExit(null, `SIG${signal}`)} (exit code ${status})`);
    }
  });

  test('a signal without an entry is named', () => expect(explainExit(null, 'SIGUSR1')).toBe('was ended by SIGUSR1'));
});

describe('exit codes', () => {
  test.each([
    [0xc0000005, /native code, most likely onnxruntime \(access violation\).*\(exit code 0xC0000005\)$/],
    [0xc0000005 | 0, /\(exit code 0xC0000005\)$/], // as a signed number
    [0xc000001d, /instruction.*\(exit code 0xC000001D\)$/],
    [0xc0000017, memory],
    [0xc000012d, memory],
    [0xe0000008, memory],
    [0x80000003, /V8.*Electron.*ragen\.nodePath/],
    [0xc0000135, /Visual C\+\+/],
    [0xc0000409, /aborted by native code/],
    [0xc000013a, /Ctrl\+C/],
  ])('Windows’ %i is explained', (code, message) => expect(explainExit(code, null)).toMatch(message));

  test.each([0, 1, 3, 128, 200, 255])('exit code %i is not interpreted', code =>
    expect(explainExit(code, null)).toBe(`ended with code ${code}`),
  );

  test('an exit without code and signal is described', () =>
    expect(explainExit(null, null)).toBe('exited for an unknown reason'));
});

test('every explanation is one sentence that continues its subject', () => {
  const codes = [...Array(256).keys(), 0xc0000005, 0xc0000006, 0xc000007b, 0xc00000fd, 0xc0000142, 0xc0000374];
  for (const message of codes.map(code => explainExit(code, null)))
    expect(message).toMatch(/^(was|ended|crashed|executed|reached|could|ran|found|lacks|stopped) [^\n]*[^.\n]$/);
});
