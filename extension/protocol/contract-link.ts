// Messages between `ragen env check` and the process that checks an environment, as frames over the process's channel (frame-channel.ts): a
// request, one report, and requests for a sign of life, which are answered while the environment's code runs.
import { z } from 'zod';
import type { ContractReport } from './environment-tools';

/** What is to be checked. */
export interface ContractRequest {
  /** The environment's name in sentences. */
  tag: string;
  /** Absolute path of its source. */
  source: string;
  config: Record<string, unknown>;
  seeds: number;
  steps: number;
  budgetMs: number;
  /** Limit of one call into environment code in milliseconds, where it does not ask for more. */
  timeoutMs: number;
  /** Bytes that the process may hold. */
  memoryBytes: number;
}

export type ToContract = { method: 'check'; request: ContractRequest } | { method: 'ping' };
export type FromContract = { method: 'report'; report: ContractReport } | { method: 'ping' };

/** What the process may send: environment code can write to the channel, so that nothing is believed unread. */
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
