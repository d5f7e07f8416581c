// Runs work on the same key, such as an episode id, one piece at a time and in the order of the calls. Work on
// different keys may overlap. The package async-lock is not used because it cannot release one of several keys before
// the work ends.

export class KeyedQueue {
  private readonly last = new Map<string, Promise<void>>();

  /** Number of keys with pending work. */
  get size(): number {
    return this.last.size;
  }

  /** Whether a key has pending work. */
  has(name: string): boolean {
    return this.last.has(name);
  }

  /**
   * Runs `work` once all earlier work on every key in `names` has ended or released the key. The work may call
   * `release` to release a key before it ends.
   */
  acquire<T>(names: readonly string[], work: (release: (name: string) => void) => Promise<T>): Promise<T> {
    const before = new Set(names.flatMap(name => this.last.get(name) ?? []));
    const ends = new Map<string, () => void>();
    for (const name of names) {
      const turn = new Promise<void>(resolve => {
        ends.set(name, () => {
          if (this.last.get(name) === turn) this.last.delete(name);
          resolve();
        });
      });
      this.last.set(name, turn);
    }
    const release = (name: string): void => ends.get(name)?.();
    const done = before.size > 0 ? Promise.all(before).then(() => work(release)) : work(release);
    const releaseAll = (): void => names.forEach(release);
    void done.then(releaseAll, releaseAll);
    return done;
  }
}
