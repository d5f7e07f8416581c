// Requests to the supervised process of an environment cell. A request waits until a process runs and holds the live
// episodes. One that the process did not survive is repeated once, with nothing else under way.
import type { Ending, Supervisor } from '../supervision/supervisor';
import { UserError } from '../../common/user-error';
import type { Content, Method, ProcessCause, ProcessRuntime, Reply } from './process-runtime';

export class ProcessRequests {
  constructor(
    private readonly runtime: ProcessRuntime,
    private readonly supervisor: Supervisor<ProcessCause>,
    private readonly log: (text: string) => void,
  ) {}

  /** Ensures a running process; after a death a new one with the same state. @throws UserError if there can be none */
  async connect(): Promise<void> {
    const refusal = await this.ready();
    if (refusal) throw new UserError(refusal.cause.how);
  }

  /** Sends a request, and repeats it if the process died. @throws UserError if it died again or was stopped */
  async send<M extends Method>(method: M, content: Content<M>): Promise<Reply<M>> {
    const reply = await this.supervisor.twice(() => this.sendOnce(method, content));
    if (reply) return reply;
    throw new UserError(
      `environment process: it died twice during ${method} (${this.runtime.lastEnd.how}): fix the environment that ends it, or see its output in the run's log`,
    );
  }

  /** As `send`, but undefined if environment code made the request fail; the reason is logged. */
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

  /** Sends a request once; undefined if the process died. @throws UserError as `connect` does */
  async sendOnce<M extends Method>(method: M, content: Content<M>): Promise<Reply<M> | undefined> {
    await this.connect();
    return this.runtime.attempt(method, content);
  }

  /**
   * Sends a request once. `onPart` receives partial replies, and the last one. Returns an ending if the process died,
   * or its state cannot be rebuilt now.
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
