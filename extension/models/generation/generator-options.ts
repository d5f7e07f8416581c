// What a generator needs besides its network: cache, random streams and watchers.
import type { SessionOptions } from '../../engine/session/session';

export interface GeneratorOptions extends SessionOptions {
  /** Maximum rows decoded together. */
  maxRows?: number;
  /** Decodes ids to text, for stop strings. */
  decode?: (ids: readonly number[]) => string;
  /**
   * Set for small models whose weights are all trained: the weights become constants of a separate session, rebuilt
   * whenever they change.
   */
  layOut?: boolean;
  /** Location of keys and values; defaults to the device if it supports resident outputs. */
  cache?: 'host' | 'device';
}
