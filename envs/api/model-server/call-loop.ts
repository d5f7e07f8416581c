// Whatever calls the model during an episode, and the time that it may take: it runs until its next call, waits for the
// reply, and runs on, until it ends. Only its own time is limited; the time in which it waits for the model is not
// counted.
import type { ModelCall, ModelReply } from '../model-calls';
import type { CallLine, WaitingCall } from './call-server';

/** What the caller did next: it called the model, it ended, or its time was over. */
export type CallEvent<End> = { call: ModelCall } | { end: End } | 'late';

export class CallLoop<End> {
  private asked: WaitingCall | undefined;

  /**
   * @param line the address that the caller uses
   * @param ended resolves when the caller has ended
   * @param leftMs milliseconds that the caller may run
   */
  constructor(
    private readonly line: CallLine,
    private readonly ended: Promise<End>,
    private leftMs: number,
  ) {}

  /**
   * Answers the call that waits for a reply, if there is one, and resolves to the next event.
   * @throws the reason for which `ended` was rejected
   */
  async next(reply?: ModelReply): Promise<CallEvent<End>> {
    if (reply) this.asked?.answer(reply);
    this.asked = undefined;
    const start = performance.now();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<'late'>(resolve => (timer = setTimeout(() => resolve('late'), this.leftMs)));
    const called = this.line.next().then(waiting => ({ waiting }));
    const ended = this.ended.then(end => ({ end }));
    try {
      const event = await Promise.race([called, ended, late]);
      if (event === 'late' || 'end' in event) return event;
      this.asked = event.waiting;
      return { call: event.waiting.call };
    } finally {
      clearTimeout(timer);
      this.leftMs = Math.max(0, this.leftMs - (performance.now() - start));
    }
  }
}
