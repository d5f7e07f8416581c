// Work on things that have names, such as episodes: what concerns the same one is done in the order in which it was asked for, everything
// else overlaps.

export class Turns {
  private readonly last = new Map<string, Promise<void>>();

  /** Names that have work in hand. */
  get size(): number {
    return this.last.size;
  }

  /** Whether there is work in hand on a name. */
  has(name: string): boolean {
    return this.last.has(name);
  }

  /** Does the work after all that was asked for before on any of the names; `leave` ends a name's turn before the whole is done. */
  take<T>(names: readonly string[], work: (leave: (name: string) => void) => Promise<T>): Promise<T> {
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
    const leave = (name: string): void => ends.get(name)?.();
    const done = before.size > 0 ? Promise.all(before).then(() => work(leave)) : work(leave);
    const leaveAll = (): void => names.forEach(leave);
    void done.then(leaveAll, leaveAll);
    return done;
  }
}
