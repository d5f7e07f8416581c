// Fetches, for the selected step, data that is stored in one file per step. Only one request is in flight. When this
// request has ended, the fetcher continues with the step that the page asked for last. Steps that the user passes while
// dragging the slider are therefore skipped. Recent answers are cached.

/** Maximum number of cached answers. */
const kept = 12;

interface Wanted<Key> {
  readonly key: Key;
  readonly name: string;
}

export class StepFetcher<Key extends object, Answer> {
  private readonly answers = new Map<string, Answer>();
  private wanted: Wanted<Key> | null = null;
  private busy = false;
  private failed = false;

  constructor(
    private readonly fetch: (key: Key) => Promise<Answer>,
    private readonly show: (key: Key, answer: Answer) => void,
    private readonly fail: (key: Key, error: unknown) => void,
  ) {}

  /**
   * Fetches the answer for `key` and shows it. Has no effect if the last call had the same key. If `key` is null, the
   * answer to the pending request is not shown.
   */
  ask(key: Key | null): void {
    const name = JSON.stringify(key);
    if (key && this.wanted?.name === name) return;
    this.wanted = key && { key, name };
    this.failed = false;
    this.proceed();
  }

  /** Allows the next `ask` to repeat the last request, if this request failed. */
  retry(): void {
    if (this.failed) this.wanted = null;
  }

  /** Clears the cache because the run's folder has changed. */
  forget(): void {
    this.answers.clear();
    this.wanted = null;
  }

  private proceed(): void {
    const { wanted } = this;
    if (!wanted) return;
    if (this.answers.has(wanted.name)) this.show(wanted.key, this.answers.get(wanted.name)!);
    else if (!this.busy) void this.request(wanted);
  }

  private async request({ key, name }: Wanted<Key>): Promise<void> {
    this.busy = true;
    let failure: { error: unknown } | null = null;
    try {
      this.answers.set(name, await this.fetch(key));
      for (const old of [...this.answers.keys()].slice(0, -kept)) this.answers.delete(old);
    } catch (error) {
      failure = { error };
    }
    this.busy = false;
    if (!failure || this.wanted?.name !== name) return this.proceed();
    this.failed = true;
    this.fail(key, failure.error);
  }
}
