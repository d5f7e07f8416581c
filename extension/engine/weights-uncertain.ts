// The error of an engine over the network when a request that changes weights has failed, and it is unknown whether the
// server has executed it.

/** The weights on the server are in an unknown state. The run must return to its newest checkpoint. */
export class WeightsUncertain extends Error {
  override readonly name = 'WeightsUncertain';
}
