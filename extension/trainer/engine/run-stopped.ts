// What work in hand ends with when its run is asked to stop, in the trainer's main thread and in the engine's. It is no failure: nothing that
// was begun counts, and a resume does it again.
export class RunStopped extends Error {
  override readonly name = 'RunStopped';

  constructor() {
    super('the run was asked to stop');
  }
}
