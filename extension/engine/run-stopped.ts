// Thrown by running work when the run is asked to stop, in the main thread and in the engine's thread. It is not a
// failure: unfinished work is discarded and repeated on resume.
export class RunStopped extends Error {
  override readonly name = 'RunStopped';

  constructor() {
    super('the run was asked to stop');
  }
}
