// Error of an engine that runs on a server. A request that changes weights has failed, and it is unknown whether the
// server has executed this request.

/** The weights on the server are in an unknown state. The run must return to its newest checkpoint. */
export class WeightsUncertain extends Error {
  override readonly name = 'WeightsUncertain';
}
