// Deletes what a run no longer needs on a server's disk: published versions that nothing samples from any more, copies
// made for a download, and saved states that no checkpoint of the run folder refers to. The API's SDK has a call for it,
// which not every server has; a refusal is reported once, and nothing more is deleted.
import { z } from 'zod';
import type { TinkerConnection } from './tinker-connection';

const samplerSchema = z.looseObject({ model_path: z.string().nullish() });

export class ServerDisk {
  private refused = false;

  constructor(
    private readonly connection: TinkerConnection,
    private readonly onRefusal: (reason: string) => void,
  ) {}

  /** Deletes weights by their address, such as tinker://model/weights/name. Never throws and never waits. */
  async remove(address: string): Promise<void> {
    const [, model, name] = /^tinker:\/\/([^/]+)\/(.+)$/.exec(address) ?? [];
    if (this.refused || model === undefined) return;
    const path = `training_runs/${encodeURIComponent(model)}/checkpoints/${encodeURI(name)}`;
    const reason = await this.connection.remove(path).catch(() => null); // the connection has ended
    if (reason === null || this.refused) return;
    this.refused = true;
    this.onRefusal(reason);
  }

  /** Deletes the weights of a sampling session. */
  async removeVersion(session: string): Promise<void> {
    if (this.refused) return;
    const sampler = await this.connection
      .get(`samplers/${encodeURIComponent(session)}`, samplerSchema)
      .catch(() => undefined); // the server does not tell its address
    if (sampler?.model_path) await this.remove(sampler.model_path);
  }
}
