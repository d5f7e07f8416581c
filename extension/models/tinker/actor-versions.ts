// Publishes versions of the actor's weights for sampling, each version at most once. Deletes a version from the
// server's disk when no more rows will be sampled from it.
import type { ServerDisk } from './server-disk';
import type { ServerModel } from './server-model';

export class ActorVersions {
  private newest: { version: number; session: Promise<string> } | null = null;
  /** Sampling sessions whose weights are on the server's disk, oldest first. */
  private readonly onDisk: string[] = [];

  /**
   * @param kept number of published versions that stay on the server's disk: the newest version, and earlier versions
   * from which rows may still be sampled
   */
  constructor(
    private readonly disk: ServerDisk,
    private readonly kept: number,
  ) {}

  /**
   * Publishes the actor's weights as `version`, unless this version has already been published. Returns the id of the
   * sampling session that uses this version.
   */
  publish(actor: ServerModel, version: number): Promise<string> {
    if (this.newest?.version === version) return this.newest.session;
    const session = actor.publish(version);
    const published = (this.newest = { version, session });
    session.then(
      id => this.keep(id),
      () => {
        if (this.newest === published) this.newest = null;
      },
    );
    return session;
  }

  /**
   * Forgets which version was published last. Must be called after other weights were loaded, because these may have
   * the number of the version that was published last.
   */
  forget(): void {
    this.newest = null;
  }

  /** Deletes all versions from the server's disk. */
  async removeAll(): Promise<void> {
    await Promise.all(this.onDisk.splice(0).map(session => this.disk.removeVersion(session)));
  }

  /** Records that a version was published. Deletes the oldest versions if more than `kept` versions are on the disk. */
  private keep(session: string): void {
    this.onDisk.push(session);
    const old = this.onDisk.splice(0, Math.max(0, this.onDisk.length - this.kept));
    for (const each of old) void this.disk.removeVersion(each);
  }
}
