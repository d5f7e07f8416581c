// Options of the generator: maximum batch size, text decoder, and location of weights and cache.
import type { SessionOptions } from '../../engine/session/session';

export interface GeneratorOptions extends SessionOptions {
  /** Maximum rows decoded together. */
  maxRows?: number;
  /** Decodes ids to text; required for stop strings. */
  decode?: (ids: readonly number[]) => string;
  /**
   * Set for small models whose weights are all trained. The weights then become constants of a separate session, which
   * is recreated when the weights change.
   */
  layOut?: boolean;
  /**
   * Location of keys and values. The default is the device if it supports outputs that stay on the device, else the
   * host.
   */
  cache?: 'host' | 'device';
}
