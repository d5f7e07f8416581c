// Counts how often each range of an environment's code runs, with V8's precise coverage in the worker thread. The
// recorder must be created before the code is compiled. While coverage is counted, code takes about 2.5 times as long
// to run.
import { Session, type Profiler } from 'node:inspector';
import { pathToFileURL } from 'node:url';
import type { CoveredRange } from '../threads/worker-messages';

export class CoverageRecorder {
  private readonly session = new Session();
  private readonly names: readonly string[];

  /** @param filename path under which the code will be compiled */
  constructor(filename: string) {
    this.names = [filename, pathToFileURL(filename).href];
    this.session.connect();
    this.session.post('Profiler.enable');
    this.session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Returns the counts since the last call, outer ranges before inner ones. */
  take(): CoveredRange[] {
    let scripts: Profiler.ScriptCoverage[] = [];
    // The callback runs synchronously, because the session is connected to its own thread.
    this.session.post('Profiler.takePreciseCoverage', (_, answer) => (scripts = answer.result));
    const own = scripts.find(({ url }) => this.names.includes(url));
    return (own?.functions ?? []).flatMap(({ ranges }) =>
      ranges.map(({ startOffset, endOffset, count }): CoveredRange => [startOffset, endOffset, count]),
    );
  }
}
