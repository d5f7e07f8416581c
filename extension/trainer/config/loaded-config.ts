// A validated configuration together with its source files, ignored keys, notes for the user, and hash. load-config.ts
// creates this object; model-length.ts may lower the value of max_model_len.
import type { RunConfig } from './schema';
import type { IgnoredKey } from './validate';

export interface LoadedConfig {
  config: RunConfig;
  /** Composed plain values with overrides, before references are resolved. */
  composed: Record<string, unknown>;
  /** All composed plain values, ignored keys included, with references resolved. */
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
   * True if max_model_len was set for the configured model. False if it was set for another model, which an override or
   * a later file then replaced (model-length.ts).
   */
  lengthIsOfModel: boolean;
}
