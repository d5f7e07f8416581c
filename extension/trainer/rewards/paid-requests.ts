// Requests to models behind APIs that a run pays for, by judges and by players of roles: limited in number, within the
// budget of their account, and answered from the cache if their content is known. Failures are reported to the caller
// and never thrown.
import { ServiceRefused } from '../evaluation/api-client';
import type { ApiModel } from '../config/schema-evaluation';
import type { ApiAnswer } from '../evaluation/api-service';
import type { RequestSlots } from '../../models/tinker/request-slots';
import type { PaidReply, ReplyCache, Spending } from './reply-cache';

/** Limits of what an account may spend in a run; null or undefined is no limit. */
export interface Budget {
  max_requests?: number | null;
  max_tokens?: number | null;
  max_cost?: number | null;
}

/** Who pays for requests. */
export interface Payer {
  /** `<tag>/<component>` or `<tag>/<role>`, under which requests are counted. */
  account: string;
  settings: Budget;
  slots: RequestSlots;
  /** Why the service is not asked any more; undefined while it is asked. */
  refused?: string;
}

export interface PaidRequest<Reply> {
  /** Requests with equal keys have the same reply. */
  key: string;
  payer: Payer;
  signal: AbortSignal;
  send(): Promise<Reply>;
  /** Returns the reply for a request that was not sent (a sentence) or that failed (the error). */
  failed(why: string | Error): Reply;
}

export class PaidRequests<Reply extends PaidReply> {
  /** Number of requests in progress, by account. */
  private readonly running = new Map<string, number>();

  constructor(private readonly cache: ReplyCache<Reply>) {}

  /** Returns the reply to a request. Never rejects. */
  reply({ key, payer, signal, send, failed }: PaidRequest<Reply>): Promise<Reply> {
    const { account, settings, slots } = payer;
    return this.cache.replied(key, () =>
      slots.run(async () => {
        const spent = this.cache.spentOn(account);
        const running = this.running.get(account) ?? 0;
        const requests = spent.requests + running;
        const stopped = payer.refused ?? budgetProblem({ ...spent, requests }, settings);
        if (stopped !== undefined) return failed(stopped);
        if (signal.aborted) return failed('the rollout ended before the request was sent');
        this.running.set(account, running + 1);
        try {
          const reply = await send();
          this.cache.record(key, account, reply); // before the next request gets the slot
          return reply;
        } catch (error) {
          if (error instanceof ServiceRefused && !signal.aborted) payer.refused = error.message;
          return failed(error as Error);
        } finally {
          this.running.set(account, this.running.get(account)! - 1);
        }
      }),
    );
  }
}

/** Returns the tokens of an answer, and their cost by the model's prices. */
export function billOf({ usage }: ApiAnswer, model: Pick<ApiModel, 'price_per_million'>): Omit<PaidReply, 'cached'> {
  const { input = 0, output = 0 } = model.price_per_million ?? {};
  const { input_tokens, output_tokens } = usage;
  return { tokens: input_tokens + output_tokens, cost: (input_tokens * input + output_tokens * output) / 1e6 };
}

/** Returns why no further request is allowed by a budget; undefined if one is allowed. */
export function budgetProblem(spent: Spending, { max_requests, max_tokens, max_cost }: Budget): string | undefined {
  if (typeof max_requests === 'number' && spent.requests >= max_requests)
    return `max_requests ${max_requests} is used up`;
  if (typeof max_tokens === 'number' && spent.tokens >= max_tokens) return `max_tokens ${max_tokens} is used up`;
  if (typeof max_cost === 'number' && spent.cost >= max_cost) return `max_cost ${max_cost} is used up`;
  return undefined;
}
