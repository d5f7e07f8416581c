// Seeded uniform random streams: xoshiro128** by Blackman and Vigna, seeded through splitmix32. The numbers are
// identical on every machine. Each turn of each row has a separate stream, so a row's tokens do not depend on the other
// rows of the batch. No package is used: recorded seeds must reproduce their episodes, which requires exactly this
// generator; pure-rand does not contain it.

export class RandomStream {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  constructor(seed: number) {
    let s = (seed ^ Math.floor(seed / 2 ** 32)) | 0;
    const splitmix = (): number => {
      s = (s + 0x9e3779b9) | 0;
      let z = s ^ (s >>> 16);
      z = Math.imul(z, 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return z ^ (z >>> 15);
    };
    [this.a, this.b, this.c, this.d] = [splitmix(), splitmix(), splitmix(), splitmix()];
  }

  /** Returns a uniform number in [0, 1) with 32 random bits. */
  uniform(): number {
    const product = Math.imul(this.b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9);
    const t = this.b << 9;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= t;
    this.d = (this.d << 11) | (this.d >>> 21);
    return (result >>> 0) / 2 ** 32;
  }

  /** Returns a uniform integer in [0, n). */
  integer(n: number): number {
    return Math.floor(this.uniform() * n);
  }

  /** Returns a standard normal number (Box–Muller). */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Complete state of the stream, stored in checkpoints. */
  get state(): [number, number, number, number] {
    return [this.a, this.b, this.c, this.d];
  }

  set state([a, b, c, d]: [number, number, number, number]) {
    [this.a, this.b, this.c, this.d] = [a, b, c, d];
  }
}
