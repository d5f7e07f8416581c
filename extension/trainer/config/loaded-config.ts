// A validated configuration with what is known about its origin: files, ignored keys, notes for the user, and its hash.
// Made by load-config.ts; model-length.ts may lower one of its values.
import type { RunConfig } from './schema';
import type { IgnoredKey } from './validate';

export interface LoadedConfig {
  config: RunConfig;
  /** Composed plain values with overrides, before references are resolved. */
  composed: Record<string, unknown>;
  /** All composed plain values with references resolved, including ignored keys. */
  resolved: Record<string, unknown>;
  /** Absolute paths of the files read, the entry file first. */
  sources: string[];
  /** Keys that are accepted but have no effect. */
  ignored: IgnoredKey[];
  /** One sentence for each ignored key, and further notes for the user. */
  notes: string[];
  /** sha256 of `config` in canonical JSON. */
  hash: string;
  /**
   * Whether max_model_len was set for the configured model rather than for a model that was replaced (model-length.ts).
   */
  lengthIsOfModel: boolean;
}
