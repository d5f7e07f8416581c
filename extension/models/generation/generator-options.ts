// Options of the generator: maximum batch size, text decoder, and location of weights and cache.
import type { SessionOptions } from '../../engine/session/session';

export interface GeneratorOptions extends SessionOptions {
  /** Maximum rows decoded together. */
  maxRows?: number;
  /** Decodes ids to text; required for stop strings. */
  decode?: (ids: readonly number[]) => string;
  /**
   * True for small models whose weights are all trained. The weights are then copied as constants into a separate
   * session, which is recreated when the weights change.
   */
  layOut?: boolean;
  /**
   * Where keys and values are stored. The default is the device if the provider can keep outputs there, else the host.
   */
  cache?: 'host' | 'device';
}

/** Returns where a generator with these options stores keys and values. */
export const cacheLocation = ({ cache, provider }: Pick<GeneratorOptions, 'cache' | 'provider'>): 'host' | 'device' =>
  cache ?? (provider === 'webgpu' ? 'device' : 'host');
