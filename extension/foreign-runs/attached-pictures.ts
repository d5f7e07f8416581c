// Copies the pictures of one file of episodes into the run folder, named by their contents. Only files of the listing
// are read, and only PNG and JPEG files within the limits of common/picture-type.ts are copied. The copies are written
// to a folder of their own, which replaces the former one when the episodes are complete.
import { createHash } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mostPictureBytes, pictureType } from '../common/picture-type';
import { readBounded } from '../node/bounded-file';
import { storeError } from '../node/files';
import type { ChatMessage, ForeignEpisode } from './adapter';
import type { SourceFolder } from './source-folder';

/** Maximum number of pictures of one file of episodes, and of one state. */
const mostPictures = 50_000;
const mostPerState = 256;

export class AttachedPictures {
  /** Bytes of the copies. */
  bytes = 0;
  private readonly copied = new Set<string>();

  /** `folder` is the absolute path of the folder that `publish` creates; `mostBytes` limits what it contains. */
  constructor(
    private readonly source: SourceFolder,
    private readonly folder: string,
    private readonly mostBytes: number,
  ) {}

  private get fresh(): string {
    return `${this.folder}.new`;
  }

  /** Returns the rollout with the names of the copies in place of the paths; null for a picture that is not shown. */
  async withCopies(rollout: ForeignEpisode): Promise<ForeignEpisode> {
    if (rollout.messages.every(({ pictures = [] }) => pictures.length === 0)) return rollout;
    const messages: ChatMessage[] = [];
    for (const message of rollout.messages) {
      const pictures: (string | null)[] = [];
      for (const path of (message.pictures ?? []).slice(0, mostPerState))
        pictures.push(path === null ? null : await this.copy(path));
      messages.push(pictures.length > 0 ? { ...message, pictures } : message);
    }
    return { ...rollout, messages };
  }

  /** Copies a picture; returns its name, null if it is missing or refused. */
  private async copy(path: string): Promise<string | null> {
    const bytes = await this.read(path);
    const found = bytes && pictureType(bytes);
    if (!bytes || !found) return null;
    const name = `${createHash('sha256').update(bytes).digest('hex').slice(0, 40)}.${found.type}`;
    if (this.copied.has(name)) return name;
    if (this.copied.size >= mostPictures || this.bytes + bytes.length > this.mostBytes) return null;
    try {
      if (this.copied.size === 0) {
        rmSync(this.fresh, { recursive: true, force: true });
        mkdirSync(this.fresh, { recursive: true });
      }
      writeFileSync(join(this.fresh, name), bytes);
    } catch (error) {
      throw storeError('write', join(this.fresh, name), error);
    }
    this.copied.add(name);
    this.bytes += bytes.length;
    return name;
  }

  private async read(path: string): Promise<Buffer | undefined> {
    if (this.source.stat(path) === undefined) return undefined;
    try {
      return await readBounded(this.source.at(path), { most: mostPictureBytes, within: this.source.root });
    } catch {
      return undefined; // too large, a link, or removed meanwhile: the text says [image]
    }
  }

  /** Replaces the former pictures. */
  publish(): void {
    rmSync(this.folder, { recursive: true, force: true });
    if (this.copied.size > 0) renameSync(this.fresh, this.folder);
  }

  /** Removes what was copied since the last `publish`. */
  discard(): void {
    rmSync(this.fresh, { recursive: true, force: true });
  }
}
