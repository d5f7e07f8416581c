// Executes tasks that use the same key, such as an episode id, one at a time and in the order of the calls. Tasks with
// different keys may overlap. The package async-lock is not used because it cannot release one of a task's keys before
// the task ends.

export class KeyedQueue {
  private readonly last = new Map<string, Promise<void>>();

  /** Number of keys with pending tasks. */
  get size(): number {
    return this.last.size;
  }

  /** Whether a key has pending tasks. */
  has(name: string): boolean {
    return this.last.has(name);
  }

  /**
   * Calls `work` when all earlier tasks have released the keys in `names`. A task releases all its keys when it ends;
   * it can call `release` to release a key earlier.
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
