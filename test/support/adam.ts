// AdamW in float64, for the exact models of the Tinker peer.

export interface AdamParameters {
  learning_rate: number;
  beta1: number;
  beta2: number;
  eps: number;
  weight_decay: number;
}

export class Adam {
  private m: Float64Array;
  private v: Float64Array;

  /** Weights whose first `steps` gradients were zero. */
  constructor(
    size: number,
    private steps = 0,
  ) {
    [this.m, this.v] = [new Float64Array(size), new Float64Array(size)];
  }

  /** Changes `weights` by one step along `gradient`. */
  step(
    weights: Float64Array,
    gradient: Float64Array,
    { learning_rate, beta1, beta2, eps, weight_decay }: AdamParameters,
  ): void {
    this.steps++;
    const correctionOfM = 1 - beta1 ** this.steps;
    const correctionOfV = 1 - beta2 ** this.steps;
    gradient.forEach((g, i) => {
      this.m[i] = beta1 * this.m[i] + (1 - beta1) * g;
      this.v[i] = beta2 * this.v[i] + (1 - beta2) * g ** 2;
      const scale = Math.sqrt(this.v[i] / correctionOfV) + eps;
      weights[i] -= learning_rate * (this.m[i] / correctionOfM / scale + weight_decay * weights[i]);
    });
  }

  copy(): Adam {
    const other = new Adam(this.m.length);
    [other.m, other.v, other.steps] = [this.m.slice(), this.v.slice(), this.steps];
    return other;
  }
}
