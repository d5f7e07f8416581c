// Versions of the actor's weights that an engine keeps apart from the weights in training, so that tokens can be
// sampled with older weights while a step trains the current weights. Only engines on servers keep versions. A version
// stays usable until its engine is stopped.
import type { GeneratedRow, GenerationRow, SamplingOptions } from './generation-calls';

export interface PublishedVersions {
  /**
   * Publishes the current weights as a version and returns the version's handle. If the current weights are already
   * published, returns the existing handle.
   */
  publish(): Promise<string>;
  /** Generates like the engine's `generate`, but samples with a published version instead of the current weights. */
  generate(version: string, rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]>;
}
