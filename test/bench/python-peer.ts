// The Python peer: one process (peer/main.py) for all benchmarks, which prints one JSON line per run. A single process
// keeps its models loaded; each memory peak is measured in a fresh process. The allocator keeps freed memory, which
// saves PyTorch about a tenth of its training time, except when memory is measured.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Side } from './benchmark';
import { measurePeak } from './process-memory';

type Answer =
  | { about: string }
  | { rate: number; of_processor: number; how: string }
  | { evidence: number[][] | null }
  | { missing: string }
  | { error: string }
  | { forgotten: true };

/**
 * Behaviour of the peer's idle threads: sleep at once, spin for a few milliseconds first, which is faster on an otherwise
 * idle machine, or what PyTorch's OpenMP does if nothing is set, which is a shorter spin.
 */
export type Waiting = 'passive' | 'spin' | 'default';

export interface PeerOptions {
  python: string;
  script: string;
  threads: number;
  waiting: Waiting;
  /** Whether to try all candidates of the peer for a benchmark and use the fastest; otherwise the first is used. */
  tune: boolean;
  /** Receives the reason why a benchmark has no peer. */
  notice: (text: string) => void;
}

const kept = {
  MALLOC_MMAP_THRESHOLD_: `${2 ** 32}`,
  MALLOC_TRIM_THRESHOLD_: `${2 ** 33}`,
  MALLOC_TOP_PAD_: `${2 ** 28}`,
};

/** Starts `python script`; rejects if that fails. */
export async function startPythonPeer(options: PeerOptions): Promise<Side> {
  const { python, script, threads, tune, notice } = options;
  const bare = { ...process.env, ...waitingVariables(options.waiting), OMP_NUM_THREADS: `${threads}` };
  const args = ['-W', 'ignore', script];
  const child = spawn(python, args, { env: { ...bare, ...kept }, stdio: ['pipe', 'pipe', 'inherit'] });
  const failed = new Promise<never>((_, reject) => {
    child.on('error', error => reject(new Error(`bench: cannot start ${python}: ${error.message}`)));
    child.on('exit', code => reject(new Error(`bench: the peer ended with code ${code}`)));
  });
  failed.catch(() => undefined); // handles a rejection while nothing awaits the promise
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ask = async (question: object): Promise<Answer> => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await Promise.race([lines.next(), failed]);
    if (done) throw new Error('bench: the peer ended without a response');
    const answer = JSON.parse(value) as Answer;
    if ('error' in answer) throw new Error(`bench: the peer failed: ${answer.error}`);
    return answer;
  };
  const answer = await ask({ about: true, threads });
  return {
    about: `${'about' in answer ? answer.about : ''}, idle threads ${options.waiting}`,
    measure: async ({ name, kind, settings }) => {
      const question = { name, kind, settings, threads, tune };
      if (kind === 'memory')
        return measurePeak(python, [...args, '--memory'], { input: JSON.stringify(question), env: bare });
      const answer = await ask(question);
      if ('missing' in answer) notice(`${name}: no peer, because ${answer.missing}`);
      return 'rate' in answer ? { value: answer.rate, ofProcessor: answer.of_processor, how: answer.how } : null;
    },
    evidence: async ({ name, kind, settings }) => {
      if (kind === 'memory') return null;
      const answer = await ask({ evidence: true, name, kind, settings, threads, tune });
      return 'evidence' in answer ? answer.evidence : null;
    },
    release: async ({ name }) => void (await ask({ forget: name })),
    stop: async () => void child.kill(),
  };
}

const waitingVariables = (waiting: Waiting): Record<string, string> =>
  ({ passive: { OMP_WAIT_POLICY: 'passive' }, spin: { GOMP_SPINCOUNT: '1000000' }, default: {} })[waiting];
