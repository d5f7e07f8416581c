// The peer in Python: one process (peer_torch.py) for all benchmarks, a JSON line for each run, so that its models stay warm.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Benchmark, Peer } from './benchmark';

type Answer = { about: string } | { rate: number } | { missing: string } | { error: string };

export interface PythonPeer extends Peer {
  stop(): void;
}

/** Starts `python script`; rejects where it cannot. Why the peer lacks a benchmark is told to `notice`. */
export async function startPythonPeer(
  python: string,
  script: string,
  threads: number,
  notice: (text: string) => void,
): Promise<PythonPeer> {
  // Idle threads sleep, as ours do: spinning ones starve on a machine that does other work.
  const OMP_WAIT_POLICY = process.env.OMP_WAIT_POLICY ?? 'passive';
  const env = { ...process.env, OMP_WAIT_POLICY, OMP_NUM_THREADS: `${threads}`, MKL_NUM_THREADS: `${threads}` };
  const child = spawn(python, ['-W', 'ignore', script], { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const failed = new Promise<never>((_, reject) => {
    child.on('error', error => reject(new Error(`bench: cannot start ${python}: ${error.message}`)));
    child.on('exit', code => reject(new Error(`bench: the peer ended with code ${code}`)));
  });
  failed.catch(() => undefined); // it may also end when nobody waits
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ask = async (question: object): Promise<Answer> => {
    child.stdin.write(`${JSON.stringify(question)}\n`);
    const { value, done } = await Promise.race([lines.next(), failed]);
    if (done) throw new Error('bench: the peer said nothing');
    const answer = JSON.parse(value as string) as Answer;
    if ('error' in answer) throw new Error(`bench: the peer failed: ${answer.error}`);
    return answer;
  };
  const answer = await ask({ about: true, threads });
  return {
    about: 'about' in answer ? answer.about : '',
    run: async (name: string, settings: Benchmark['settings']) => {
      const answer = await ask({ name, settings });
      if ('missing' in answer) notice(`${name}: no peer, because ${answer.missing}`);
      return 'rate' in answer ? answer.rate : null;
    },
    stop: () => void child.kill(),
  };
}
