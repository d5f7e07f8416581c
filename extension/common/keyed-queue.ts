// Serializes work per key, such as an episode id: work on the same key runs in request order, everything else overlaps.
// Not async-lock: it cannot release one of several names before the work is done.

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

  /** Runs the work after all earlier work on any of the names. `release` releases a name before the work is done. */
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
