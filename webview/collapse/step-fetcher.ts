// Fetches what lies in a file a step, for the step that is looked at. While a reader scrubs, steps that are passed over are not asked for:
// one question is on its way at a time, and after it comes the newest wish. What was shown lately is kept.

/** Answers that are kept. */
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

  /** Wants this to be shown, or nothing. What is shown already is not drawn again. */
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

  /** Draws again what is shown, as after a change of theme. */
  again(): void {
    this.shown = null;
    if (this.wanted) this.present(this.wanted);
  }

  /** Drops what was kept: the run's folder has changed. */
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
