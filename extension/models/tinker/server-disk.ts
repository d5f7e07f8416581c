// Deletes from a server's disk what a run no longer needs: published versions from which no more rows will be sampled,
// copies that were made for a download, and saved states to which no checkpoint in the run folder refers. Some servers
// do not support requests for deletion. When the server refuses such a request for the first time, the reason is
// reported, and no further deletion is requested.
import { z } from 'zod';
import type { TinkerConnection } from './tinker-connection';

const samplerSchema = z.looseObject({ model_path: z.string().nullish() });

export class ServerDisk {
  private refused = false;

  constructor(
    private readonly connection: TinkerConnection,
    private readonly onRefusal: (reason: string) => void,
  ) {}

  /**
   * Deletes the weights at an address, such as tinker://model/weights/name. Never throws, and never repeats a failed
   * request.
   */
  async remove(address: string): Promise<void> {
    const [, model, name] = /^tinker:\/\/([^/]+)\/(.+)$/.exec(address) ?? [];
    if (this.refused || model === undefined) return;
    const path = `training_runs/${encodeURIComponent(model)}/checkpoints/${encodeURI(name)}`;
    const reason = await this.connection.remove(path).catch(() => null); // rejects if the connection has ended
    if (reason === null || this.refused) return;
    this.refused = true;
    this.onRefusal(reason);
  }

  /** Deletes the published weights that a sampling session uses. */
  async removeVersion(session: string): Promise<void> {
    if (this.refused) return;
    const sampler = await this.connection
      .get(`samplers/${encodeURIComponent(session)}`, samplerSchema)
      .catch(() => undefined); // the server does not report the address of the weights
    if (sampler?.model_path) await this.remove(sampler.model_path);
  }
}
