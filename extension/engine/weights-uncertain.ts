// An engine over the network does not know whether its server has executed a request that changes weights.

/** The state of the weights on the server is unknown: the run must return to its newest checkpoint. */
export class WeightsUncertain extends Error {
  override readonly name = 'WeightsUncertain';
}
