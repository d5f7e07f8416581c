// Thrown, in the main thread and in the engine's thread, when the run has been requested to stop. A stop is not a
// failure: unfinished work is discarded and repeated on resume.
export class RunStopped extends Error {
  override readonly name = 'RunStopped';

  constructor() {
    super('the run was asked to stop');
  }
}
