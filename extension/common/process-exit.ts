// Uses the signal or the exit code of a process to explain why the process ended. An exit code may encode a signal (128
// + the signal's number), or on Windows an exception status. Native code such as onnxruntime can end a process without
// a message; the explanation adds the likely cause and the remedy. Sources: signal(7), [MS-ERREF] NTSTATUS, exit codes
// in Node's documentation.

const lessMemory =
  'lower the micro-batch sizes or max_model_len, train a LoRA adapter, or use a smaller or quantised model';

const brokenNatively =
  'reinstall the packages (npm ci), check that the weights file is complete, and if the crash happens again, report it with the end of the log';

const unknownInstruction =
  'reinstall the packages on this machine, because they may have been built for another processor, or use a machine whose processor has AVX2';

/** For each signal: how the process ended, the likely cause, and the remedy. */
const signals: Readonly<Record<string, string>> = {
  SIGKILL: `was killed (SIGKILL), most likely by the system because memory ran out: ${lessMemory}`,
  SIGTRAP:
    "was stopped by SIGTRAP, most likely because the editor's runtime (Electron) refused a large aligned allocation: use Node 20 or newer (in VS Code, set ragen.nodePath to its path)",
  SIGABRT: `was aborted (SIGABRT), either by native code (onnxruntime) after an internal error or by Node because its heap is full: ${lessMemory}, and look at the end of the log`,
  SIGSEGV: `crashed in native code, most likely onnxruntime (SIGSEGV): ${brokenNatively}`,
  SIGBUS: `could not access a memory-mapped file (SIGBUS), most likely because a weights file is truncated or its disk is full or disconnected: check the model folder and the disk`,
  SIGILL: `executed an instruction that this processor does not support (SIGILL), most likely in native code: ${unknownInstruction}`,
  SIGFPE: `crashed with an arithmetic error in native code, most likely onnxruntime (SIGFPE): ${brokenNatively}`,
  SIGSYS:
    'was stopped at a system call that is not permitted here (SIGSYS): repeat the command outside the sandbox or container',
  SIGXCPU:
    'reached its processor time limit (SIGXCPU): raise the limit (ulimit -t), then resume from the newest checkpoint',
  SIGXFSZ:
    'reached the limit for the size of a file (SIGXFSZ): raise the limit (ulimit -f), then resume from the newest checkpoint',
  SIGTERM: 'was terminated by another process (SIGTERM): resume the run, or repeat the command',
  SIGINT: 'was interrupted (SIGINT): resume the run, or repeat the command',
  SIGHUP:
    'was ended because its terminal or session was closed (SIGHUP): resume the run, and start further runs with --detach',
};

/**
 * Linux signal numbers, for decoding the exit codes of shells and containers. On macOS, only SIGBUS and SIGSYS have
 * different numbers.
 */
const numbers: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  4: 'SIGILL',
  5: 'SIGTRAP',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  15: 'SIGTERM',
  24: 'SIGXCPU',
  25: 'SIGXFSZ',
  31: 'SIGSYS',
};

const noMemory = `ran out of memory: ${lessMemory}, or enlarge the paging file`;

/** For each Windows exception status: how the process ended, the likely cause, and the remedy. */
const statuses: Readonly<Record<number, string>> = {
  0x80000003: `stopped at a breakpoint, most likely because V8's heap is full or Electron refused a large allocation: use Node 20 or newer (in VS Code, set ragen.nodePath to its path)`,
  0xc0000005: `crashed in native code, most likely onnxruntime (access violation): ${brokenNatively}`,
  0xc0000006: 'could not access a memory-mapped file (in-page error): check the model folder and its disk or network',
  0xc0000017: noMemory,
  0xc000012d: noMemory,
  0xe0000008: noMemory,
  0xc000001d: `executed an instruction that this processor does not support: ${unknownInstruction}`,
  0xc000007b:
    'could not load a library of another architecture: reinstall the packages (npm ci) with a Node.js that is built for this machine',
  0xc00000fd: `ran out of stack in native code: ${brokenNatively}`,
  0xc0000135:
    'lacks a library that onnxruntime needs, most likely the Visual C++ runtime: install the Visual C++ Redistributable',
  0xc000013a: 'was interrupted (Ctrl+C or a closed console): resume the run, or repeat the command',
  0xc0000142: 'could not start a library that onnxruntime needs: reinstall the Visual C++ Redistributable',
  0xc0000374: `was ended because native code, most likely onnxruntime, damaged its heap: ${brokenNatively}`,
  0xc0000409: `was aborted by native code, most likely onnxruntime (fast fail): ${brokenNatively}`,
};

/**
 * Whether a signal or native code ended the process. If so, the last output of the process does not explain the exit.
 */
export const endedBySystem = (code: number | null, signal: string | null): boolean =>
  signal !== null || (code !== null && (code >>> 0 in statuses || code - 128 in numbers));

/**
 * Returns how a process ended, the likely cause and the remedy. The text has no subject: `was killed (SIGKILL) …`.
 * Callers prepend a subject (`trainer of X: it …`). `code` and `signal` are the values that `child_process` and
 * `worker_threads` report. Both values are null if nothing is known about the exit. For an unknown code, returns the
 * code without a cause.
 */
export function explainExit(code: number | null, signal: string | null): string {
  if (signal !== null) return signals[signal] ?? `was ended by ${signal}`;
  if (code === null) return 'exited for an unknown reason';
  const status = statuses[code >>> 0]; // Windows statuses may be signed
  if (status !== undefined) return `${status} (exit code 0x${(code >>> 0).toString(16).toUpperCase()})`;
  const name = code > 128 ? numbers[code - 128] : undefined;
  return name === undefined ? `ended with code ${code}` : `${signals[name]} (exit code ${code})`;
}
