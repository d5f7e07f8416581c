// What the end of a process says about its cause: a signal, or an exit code that stands for one (128 + its number; on Windows the
// status of an exception). Native code (onnxruntime) ends a process without a word of its own; here it gets one, likely cause and
// remedy, for whoever started the process. Sources: signal(7), [MS-ERREF] NTSTATUS, Node's documentation of exit codes.

const lessMemory =
  'lower the micro-batch sizes or max_model_len, train a LoRA adapter, or take a smaller or quantised model';

const brokenNatively =
  'install the packages anew (npm ci), check that the weights are whole, and report it with the end of the log if it comes again';

const unknownInstruction =
  'the processor lacks an instruction that onnxruntime uses (a build for another machine, or an emulated one): install the packages anew on this machine or take one with AVX2';

/** By signal: how the process ended, why it likely did, and what to do. */
const signals: Readonly<Record<string, string>> = {
  SIGKILL: `was killed (SIGKILL), most likely by the system because memory ran out: ${lessMemory}`,
  SIGTRAP:
    "was stopped by SIGTRAP, as the editor's runtime (Electron) is at large aligned allocations: run it on Node 20 or newer (in VS Code, set ragen.nodePath to one)",
  SIGABRT: `was aborted (SIGABRT), as native code (onnxruntime) does at an error it cannot report and Node does when its heap is full: ${lessMemory}, and look at the end of the log`,
  SIGSEGV: `crashed in native code, most likely onnxruntime (SIGSEGV): ${brokenNatively}`,
  SIGBUS: `lost memory that is mapped from a file (SIGBUS), most likely because a weights file was cut or its disk is full or gone: check the model folder and the disk`,
  SIGILL: `met an instruction that this processor does not know (SIGILL), most likely in native code: ${unknownInstruction}`,
  SIGFPE: `crashed at an arithmetic error in native code, most likely onnxruntime (SIGFPE): ${brokenNatively}`,
  SIGSYS: 'was stopped at a system call that is not permitted here (SIGSYS): run it outside the sandbox or container',
  SIGXCPU:
    'reached its limit of processor time (SIGXCPU): raise the limit (ulimit -t), then resume from the newest checkpoint',
  SIGXFSZ:
    'reached the limit of a file’s size (SIGXFSZ): raise the limit (ulimit -f), then resume from the newest checkpoint',
  SIGTERM: 'was asked to end from outside (SIGTERM): resume it when you like',
  SIGINT: 'was interrupted (SIGINT): resume it when you like',
  SIGHUP: 'ended with its terminal or session (SIGHUP): start it with --detach, or resume it',
};

/** Numbers of signals on Linux, for exit codes of shells and containers; those of macOS differ for SIGBUS and SIGSYS alone. */
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

const noMemory = `could get no more memory: ${lessMemory}, or enlarge the paging file`;

/** By status of a Windows exception. */
const statuses: Readonly<Record<number, string>> = {
  0x80000003: `stopped at a breakpoint, as V8 does when its heap is full and Electron at large allocations: run it on Node 20 or newer (in VS Code, set ragen.nodePath to one)`,
  0xc0000005: `crashed in native code, most likely onnxruntime (access violation): ${brokenNatively}`,
  0xc0000006: 'lost memory that is mapped from a file (in-page error): check the model folder and its disk or network',
  0xc0000017: noMemory,
  0xc000012d: noMemory,
  0xe0000008: noMemory,
  0xc000001d: `met an instruction that this processor does not know: ${unknownInstruction}`,
  0xc000007b:
    'could not load a library of another architecture: install the packages anew on this machine (npm ci) with a Node of its architecture',
  0xc00000fd: `ran out of stack in native code: ${brokenNatively}`,
  0xc0000135:
    'lacks a library that onnxruntime needs, most likely the Visual C++ runtime: install the Visual C++ Redistributable',
  0xc000013a: 'was interrupted (Ctrl+C or a closed console): resume it when you like',
  0xc0000142: 'could not start a library that onnxruntime needs: install the Visual C++ Redistributable anew',
  0xc0000374: `found its heap damaged by native code, most likely onnxruntime: ${brokenNatively}`,
  0xc0000409: `was aborted by native code, most likely onnxruntime (fast fail): ${brokenNatively}`,
};

/** Whether a process was ended from outside its program: by a signal, or by native code. Then its last output explains nothing. */
export const endedBySystem = (code: number | null, signal: string | null): boolean =>
  signal !== null || (code !== null && (code >>> 0 in statuses || code - 128 in numbers));

/**
 * How a process ended, likely why, and what to do: the rest of a sentence whose subject is the process (`trainer of X: it …`).
 * `code` and `signal` as `child_process` and `worker_threads` tell them; both null where nothing is known. Codes without a known cause
 * are named and nothing is made up about them.
 */
export function explainExit(code: number | null, signal: string | null): string {
  if (signal !== null) return signals[signal] ?? `was ended by ${signal}`;
  if (code === null) return 'ended without a word';
  const status = statuses[code >>> 0]; // Windows' statuses come signed or unsigned
  if (status !== undefined) return `${status} (exit code 0x${(code >>> 0).toString(16).toUpperCase()})`;
  const name = code > 128 ? numbers[code - 128] : undefined;
  return name === undefined ? `ended with code ${code}` : `${signals[name]} (exit code ${code})`;
}
