// An episode on a server. A request that the server did not accept is repeated after a delay. If the session is lost,
// the episode is replayed in a new session from (seed, actions), and the states of the replay must equal the earlier
// states. Therefore no session applies a step twice. The package p-retry is not used, because a server's Retry-After
// must lengthen a delay, and the episode's seed must determine the jitter.
import { createHash } from 'node:crypto';
import { MissingDependency } from '../api/environment';
import { NotTaken, SessionLost, type RemotePeer, type RemoteReset, type RemoteSession, type RemoteState } from './peer';

export interface RetryOptions {
  /** The server's address, for error messages. */
  url: string;
  /** Maximum number of retries per request. */
  retries: number;
  /** Seconds before the first retry. Each further delay is twice as long as the delay before it, up to one minute. */
  backoff: number;
}

const longestWait = 60;

/**
 * Returns the seconds to wait before a retry; `retry` counts from 1. The seed adds jitter, so that the episodes of a
 * batch do not all retry at the same time.
 */
export const waitBefore = (retry: number, backoff: number, seed: number): number =>
  Math.min(backoff * 2 ** (retry - 1), longestWait) * (0.7 + 0.6 * ((seed * 0.6180339887) % 1));

export class RemoteEpisode {
  private session: RemoteSession | undefined;
  private readonly played: { action: string; came: string }[] = [];
  private begun: { state: RemoteState; came: string } | undefined;

  constructor(
    private readonly peer: RemotePeer,
    private readonly options: RemoteReset,
    private readonly retry: RetryOptions,
  ) {}

  /** Resets the environment on the server and returns the first state. */
  begin(): Promise<RemoteState> {
    return this.perform(async () => this.begun!.state);
  }

  /** Applies an action and returns the next state. */
  async step(action: string): Promise<RemoteState> {
    const state = await this.perform(session => session.step(action));
    this.played.push({ action, came: fingerprint(state) });
    return state;
  }

  async close(): Promise<void> {
    const { session } = this;
    this.session = undefined;
    await session?.close();
  }

  private async perform(ask: (session: RemoteSession) => Promise<RemoteState>): Promise<RemoteState> {
    const { url, retries, backoff } = this.retry;
    for (let failures = 0; ;) {
      try {
        this.session ??= await this.rebuilt();
        return await ask(this.session);
      } catch (error) {
        const notTaken = error instanceof NotTaken;
        if (!notTaken && !(error instanceof SessionLost)) throw this.refused(error as Error);
        if (!notTaken) await this.close();
        if (++failures > retries) {
          const tried = failures === 1 ? '1 request' : `${failures} requests`;
          throw new MissingDependency(
            `got no response from the server at ${url} after ${tried} (${error.message})`,
            'check the server, or raise env_config.timeout or env_config.retries',
          );
        }
        const seconds = Math.max(
          waitBefore(failures, backoff, this.options.seed),
          notTaken ? Math.min(error.after ?? 0, longestWait) : 0,
        );
        await new Promise(done => setTimeout(done, seconds * 1000));
      }
    }
  }

  /**
   * Opens a session and replays the episode in it.
   * @throws MissingDependency if a replayed state differs from the earlier one
   */
  private async rebuilt(): Promise<RemoteSession> {
    const session = await this.peer.open();
    try {
      const state = await session.reset(this.options);
      const came = fingerprint(state);
      if (this.begun && this.begun.came !== came) throw this.differs('the first observation');
      this.begun ??= { state, came };
      for (const [i, step] of this.played.entries())
        if (fingerprint(await session.step(step.action)) !== step.came) throw this.differs(`step ${i + 1}`);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  private refused(error: Error): MissingDependency {
    if (error instanceof MissingDependency) return error;
    return new MissingDependency(
      `was refused by the server at ${this.retry.url} (${error.message})`,
      'correct the env_config of its tag, or fix the environment on the server',
    );
  }

  private differs(what: string): MissingDependency {
    return new MissingDependency(
      `lost its session on the server at ${this.retry.url}, and a replay of the episode gave another result (${what} differs, although seed and actions are equal)`,
      'make the server deterministic, or make it keep its sessions',
    );
  }
}

function fingerprint({ text, images, reward, done }: RemoteState): string {
  const hash = createHash('sha256').update(JSON.stringify([text, reward, done]));
  for (const image of images) hash.update(image);
  return hash.digest('hex');
}
