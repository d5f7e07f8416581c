// Versions of the actor's weights that an engine keeps apart from the weights in training, so that older weights can
// sample while a step trains. Only servers have them; a version stays usable until its engine is stopped.
import type { GeneratedRow, GenerationRow, SamplingOptions } from './generation-calls';

export interface PublishedVersions {
  /** Publishes the current weights and returns their handle; weights that are published already keep their handle. */
  publish(): Promise<string>;
  /** Like the engine's `generate`, under a published version instead of the current weights. */
  generate(version: string, rows: GenerationRow[], sampling: SamplingOptions): Promise<GeneratedRow[]>;
}
