// Messages between `ragen env check` and the process that checks an environment. One request is sent and one report is
// returned. While environment code runs, the process answers pings. Messages are frames over the process's channel
// (frame-channel.ts). JSON-RPC is not used, because environment code can write to the channel. Frames limit the size of
// a message and detect invalid bytes.
import { z } from 'zod';
import type { EnvironmentSpec } from './environment-link';
import type { ContractReport } from './environment-tools';

/** The environment to check, and limits of the check. */
export interface ContractRequest {
  /** Name of the environment in messages. */
  tag: string;
  /** Absolute path of the environment's source. */
  source: string;
  /** Set if the environment has a rewards file. */
  scored?: EnvironmentSpec['scored'];
  config: Record<string, unknown>;
  seeds: number;
  steps: number;
  budgetMs: number;
  /**
   * Time limit of one call of environment code, in milliseconds. If the environment declares a longer limit, the longer
   * limit applies.
   */
  timeoutMs: number;
  /** Memory limit of the process in bytes. */
  memoryBytes: number;
}

export type ToContract = { method: 'check'; request: ContractRequest } | { method: 'ping' };
export type FromContract = { method: 'report'; report: ContractReport } | { method: 'ping' };

/** Schema of the process's messages. They are validated because environment code can write to the channel. */
export const fromContractSchema: z.ZodType<FromContract> = z.discriminatedUnion('method', [
  z.object({ method: z.literal('ping') }),
  z.object({
    method: z.literal('report'),
    report: z.object({
      environment: z.string(),
      source: z.string(),
      checks: z
        .array(
          z.object({
            name: z.string(),
            state: z.enum(['passed', 'failed', 'skipped']),
            evidence: z.string(),
            at: z.string().optional(),
          }),
        )
        .min(1),
    }),
  }),
]);
