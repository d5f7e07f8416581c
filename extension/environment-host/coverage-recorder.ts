// Counts how often each part of an environment's code is reached, in its worker thread, by V8's own precise coverage. It must be started
// before the code is compiled; counted code takes about two and a half times as long.
import { Session, type Profiler } from 'node:inspector';
import { pathToFileURL } from 'node:url';
import type { CoveredRange } from './work';

export class CoverageRecorder {
  private readonly session = new Session();
  private readonly names: readonly string[];

  /** `filename` is the path that the code will be compiled under. */
  constructor(filename: string) {
    this.names = [filename, pathToFileURL(filename).href];
    this.session.connect();
    this.session.post('Profiler.enable');
    this.session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Counts since the last time, outer ranges before those within them. */
  take(): CoveredRange[] {
    let scripts: Profiler.ScriptCoverage[] = [];
    // Within one thread the session answers before it returns.
    this.session.post('Profiler.takePreciseCoverage', (_, answer) => (scripts = answer.result));
    const own = scripts.find(({ url }) => this.names.includes(url));
    return (own?.functions ?? []).flatMap(({ ranges }) =>
      ranges.map(({ startOffset, endOffset, count }): CoveredRange => [startOffset, endOffset, count]),
    );
  }
}
