// Requests to the supervised process of an environment cell. Each request waits until a process is running and has
// replayed the live episodes. If the process dies during a request, the request is sent once more. No other request is
// sent during this second attempt.
import type { Ending, Supervisor } from '../supervision/supervisor';
import { UserError } from '../../common/user-error';
import type { Content, Method, ProcessCause, ProcessRuntime, Reply } from './process-runtime';

export class ProcessRequests {
  constructor(
    private readonly runtime: ProcessRuntime,
    private readonly supervisor: Supervisor<ProcessCause>,
    private readonly log: (text: string) => void,
  ) {}

  /**
   * Waits until a process is running and has replayed all live episodes.
   * @throws UserError if no process can be started
   */
  async connect(): Promise<void> {
    const refusal = await this.ready();
    if (refusal) throw new UserError(refusal.cause.how);
  }

  /**
   * Sends a request and returns the reply. If the process dies, sends the request once more.
   * @throws UserError if the process dies again or was stopped
   */
  async send<M extends Method>(method: M, content: Content<M>): Promise<Reply<M>> {
    const reply = await this.supervisor.twice(() => this.sendOnce(method, content));
    if (reply) return reply;
    throw new UserError(
      `environment process: the process died twice during ${method} (${this.runtime.lastEnd.how}): read the process's output in the run's log, and fix the environment that ends the process`,
    );
  }

  /**
   * Does the same as `send`. If the request fails because of environment code, logs the error and returns undefined
   * instead of throwing the error.
   */
  async trySend<M extends Method>(method: M, content: Content<M>): Promise<Reply<M> | undefined> {
    try {
      return await this.send(method, content);
    } catch (error) {
      if (this.runtime.dead) throw this.runtime.dead;
      if (!(error instanceof UserError)) throw error;
      this.log(`${error.message}\n`);
      return undefined;
    }
  }

  /**
   * Sends a request once. Returns undefined if the process died.
   * @throws UserError as `connect`
   */
  async sendOnce<M extends Method>(method: M, content: Content<M>): Promise<Reply<M> | undefined> {
    await this.connect();
    return this.runtime.attempt(method, content);
  }

  /**
   * Sends a request once; `onPart` receives all replies including the last. If the process died or cannot be rebuilt,
   * returns the reason.
   */
  async supervise<M extends Method>(
    method: M,
    content: Content<M>,
    onPart: (part: Reply<M>) => void,
  ): Promise<Ending<ProcessCause> | undefined> {
    const refusal = await this.ready();
    if (refusal) return refusal;
    const reply = await this.runtime.attempt(method, content, onPart);
    if (!reply) return this.runtime.ending;
    onPart(reply);
    return undefined;
  }

  private async ready(): Promise<Ending<ProcessCause> | undefined> {
    if (this.runtime.dead) throw this.runtime.dead;
    return this.supervisor.ready();
  }
}
