// Loaded into a benchmark's processes by NODE_OPTIONS=--import. Lets a run start as many environment processes as on a
// machine with RAGEN_BENCH_CORES cores, records a CPU profile of the trainer's main thread (RAGEN_BENCH_PROFILE: file),
// and writes the trainer's memory and CPU time twice a second (RAGEN_BENCH_TRACE: file).
import { appendFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import os from 'node:os';
import { isMainThread } from 'node:worker_threads';

const { RAGEN_BENCH_CORES: cores, RAGEN_BENCH_PROFILE: profile, RAGEN_BENCH_TRACE: trace } = process.env;
if (cores) os.availableParallelism = () => Number(cores);
if (isMainThread && process.argv[1]?.endsWith('trainer.cjs')) {
  if (profile) {
    const session = new Session();
    session.connect();
    session.post('Profiler.enable');
    session.post('Profiler.setSamplingInterval', { interval: 1000 });
    session.post('Profiler.start');
    process.prependListener('exit', () =>
      session.post(
        'Profiler.stop',
        (error, result) => result && writeFileSync(profile, JSON.stringify(result.profile)),
      ),
    );
  }
  if (trace) {
    const note = () => {
      const { rss, heapUsed, external, arrayBuffers } = process.memoryUsage();
      const { user, system } = process.cpuUsage();
      const line = {
        t: Date.now(),
        pid: process.pid,
        rss,
        heapUsed,
        external,
        arrayBuffers,
        cpu_ms: (user + system) / 1000,
      };
      appendFileSync(trace, `${JSON.stringify(line)}\n`);
    };
    setInterval(note, 500).unref();
    process.prependListener('exit', note);
  }
}
