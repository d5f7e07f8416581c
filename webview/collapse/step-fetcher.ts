// Fetches data stored in one file per step, for the selected step. Only one request is in flight; after it, the most
// recently requested step is fetched, so steps passed while scrubbing are skipped. Recent answers are cached.

/** Maximum number of cached answers. */
const kept = 12;

export class StepFetcher<Key extends object, Answer> {
  private readonly answers = new Map<string, Answer>();
  private wanted: Key | null = null;
  private busy = false;
  private shown: string | null = null;

  constructor(
    private readonly fetch: (key: Key) => Promise<Answer>,
    private readonly show: (key: Key, answer: Answer) => void,
    private readonly fail: (key: Key, error: unknown) => void,
  ) {}

  /** Shows this key, or nothing. A key that is already shown is not drawn again. */
  ask(key: Key | null): void {
    this.wanted = key;
    if (key === null) this.shown = null;
    if (key === null || this.present(key) || this.busy) return;
    this.busy = true;
    const name = JSON.stringify(key);
    void this.fetch(key)
      .then(
        answer => {
          this.answers.set(name, answer);
          for (const old of [...this.answers.keys()].slice(0, -kept)) this.answers.delete(old);
        },
        (error: unknown) => {
          if (this.wanted === key) this.fail(key, error);
          this.shown = null;
        },
      )
      .then(() => {
        this.busy = false;
        if (!this.wanted) return;
        if (this.wanted === key || JSON.stringify(this.wanted) === name) this.present(this.wanted);
        else this.ask(this.wanted);
      });
  }

  /** Redraws what is shown, for example after a change of theme. */
  again(): void {
    this.shown = null;
    if (this.wanted) this.present(this.wanted);
  }

  /** Clears the cache because the run's folder has changed. */
  forget(): void {
    this.answers.clear();
    this.shown = null;
  }

  private present(key: Key): boolean {
    const name = JSON.stringify(key);
    if (this.shown === name) return true;
    if (!this.answers.has(name)) return false;
    this.shown = name;
    this.show(key, this.answers.get(name)!);
    return true;
  }
}
