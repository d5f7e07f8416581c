// Opens a session on a server, and sends sampling requests. Used by runs, and by the inspection of a server.
import { UserError } from '../../common/user-error';
import type { TinkerConnection } from './tinker-connection';
import { modelInput, sampledSchema, sessionSchema, type SampledSequence } from './tinker-wire';

/** Version of the tinker SDK whose protocol the requests follow. */
const sdkVersion = '0.24.1';

/** Sampling parameters in the API's form. */
export interface SamplingParams {
  max_tokens: number;
  seed: number;
  temperature: number;
  top_p: number;
  /** −1 for no limit. */
  top_k: number;
  /** Token ids that end the response. */
  stop: readonly number[];
}

/** Returns the parameters for sampling at most `tokens` tokens from the complete distribution. */
export const plainSampling = (tokens: number, seed: number): SamplingParams => ({
  ...{ max_tokens: tokens, seed, temperature: 1, top_p: 1, top_k: -1, stop: [] },
});

/** Opens a session and returns its id. Heartbeats keep the session alive until the connection is closed. */
export async function openSession(connection: TinkerConnection): Promise<string> {
  const start = { tags: ['ragen'], user_metadata: null, sdk_version: sdkVersion, type: 'create_session' };
  const { session_id } = await connection.post('create_session', start, sessionSchema);
  connection.keepAlive(session_id);
  return session_id;
}

/** Samples from published versions of models. */
export class SampleRequests {
  /** Sequence number of the next request. */
  private next = 0;

  constructor(
    private readonly connection: TinkerConnection,
    private readonly url: string,
  ) {}

  /** Samples one response to a prompt from a published version. */
  async sample(version: string, prompt: number[], sampling_params: SamplingParams): Promise<SampledSequence> {
    const body = {
      sampling_session_id: version,
      seq_id: this.next++,
      num_samples: 1,
      prompt: modelInput(prompt),
      sampling_params,
      type: 'sample',
    };
    const { result } = await this.connection.later('asample', body, sampledSchema);
    const [sequence] = result.sequences;
    if (!sequence)
      throw new UserError(`engine: ${this.url} returned no sequence for a prompt: use a server of the Tinker API`);
    return sequence;
  }

  /** Samples a response for the probe (server-probe.ts): a few tokens, always with the same seed. */
  draw(version: string, prompt: number[]): Promise<SampledSequence> {
    return this.sample(version, prompt, plainSampling(4, 1));
  }
}
