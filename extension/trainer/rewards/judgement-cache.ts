// The replies of judges that a run has paid for, in `judgements.jsonl` of the run folder. A request whose content is
// known is not sent again, so a resumed run that repeats steps gets the same scores. Requests with the same content that
// run at the same time are sent once. The budgets count all lines, so they hold over resumes.
import { existsSync } from 'node:fs';
import { judgementLineSchema, type Judgement, type JudgementLine } from '../../run-data/judgement';
import { LineLog, readValues } from '../store/line-log';

/** What has been spent on an account, which is `<tag>/<component>`. */
export interface Spending {
  requests: number;
  tokens: number;
  cost: number;
}

export class JudgementCache {
  private readonly known = new Map<string, JudgementLine>();
  private readonly running = new Map<string, Promise<Judgement>>();
  private readonly spending = new Map<string, Spending>();
  private readonly log: LineLog;

  /**
   * Opens or creates the file.
   * @param onUnwritten receives the error if a reply cannot be written; the reply is used nevertheless
   * @throws UserError if the file cannot be read or opened
   */
  constructor(
    file: string,
    private readonly onUnwritten: (error: Error) => void,
  ) {
    this.log = new LineLog(file, { fsync: 'explicit' });
    if (existsSync(file))
      for (const { value } of readValues(file, line => judgementLineSchema.parse(line))) this.count(value);
  }

  /** Returns what has been spent on an account, which is `<tag>/<component>`; the returned object is updated later. */
  spentOn(account: string): Spending {
    let spent = this.spending.get(account);
    if (!spent) this.spending.set(account, (spent = { requests: 0, tokens: 0, cost: 0 }));
    return spent;
  }

  /**
   * Returns the known judgement of a request, or that of `ask`. If the same request is running, waits for its
   * judgement.
   */
  async judged(key: string, ask: () => Promise<Judgement>): Promise<Judgement> {
    const known = this.known.get(key);
    if (known) return { model: known.model, score: known.score, text: known.text, cached: true, tokens: 0, cost: 0 };
    const running = this.running.get(key);
    if (running) return running.then(first => ({ ...first, cached: first.score !== null, tokens: 0, cost: 0 }));
    const asking = ask();
    this.running.set(key, asking);
    try {
      return await asking;
    } finally {
      this.running.delete(key);
    }
  }

  /** Counts and stores an answered request. Only judgements with a score answer later requests. */
  record(key: string, account: string, { cached: _, ...judgement }: Judgement): void {
    const line = { key, account, ...judgement };
    this.count(line);
    try {
      this.log.append(line);
    } catch (error) {
      this.onUnwritten(error as Error);
    }
  }

  close(): void {
    this.log.close();
  }

  private count(line: JudgementLine): void {
    if (line.score !== null) this.known.set(line.key, line);
    const spent = this.spentOn(line.account);
    spent.requests++;
    spent.tokens += line.tokens;
    spent.cost += line.cost;
  }
}

/** Limits of what an account may spend in a run; null or undefined is no limit. */
export interface Budget {
  max_requests?: number | null;
  max_tokens?: number | null;
  max_cost?: number | null;
}

/** Returns why no further request is allowed by a budget; undefined if one is allowed. */
export function budgetProblem(spent: Spending, { max_requests, max_tokens, max_cost }: Budget): string | undefined {
  if (typeof max_requests === 'number' && spent.requests >= max_requests)
    return `max_requests ${max_requests} is used up`;
  if (typeof max_tokens === 'number' && spent.tokens >= max_tokens) return `max_tokens ${max_tokens} is used up`;
  if (typeof max_cost === 'number' && spent.cost >= max_cost) return `max_cost ${max_cost} is used up`;
  return undefined;
}
