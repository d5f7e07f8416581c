// The replies of models behind APIs that a run has paid for, in a file of the run folder: `judgements.jsonl` of judges,
// `role-replies.jsonl` of players of roles. A request whose key is known is not sent again, so a resumed run that
// repeats steps gets the same replies. Requests with the same key that run at the same time are sent once. The budgets
// count all lines, so they hold over resumes.
import { existsSync } from 'node:fs';
import { LineLog, readValues } from '../store/line-log';

/** What a reply cost. A cached reply costs nothing. */
export interface PaidReply {
  cached: boolean;
  /** Input and output tokens of the request. */
  tokens: number;
  /** Cost by `price_per_million`. */
  cost: number;
}

/** A line of the file: a reply that was paid for, and the request and account that it belongs to. */
export interface ReplyLine<Reply extends PaidReply> {
  key: string;
  account: string;
  reply: Reply;
}

/** What has been spent on an account, which is `<tag>/<component>` or `<tag>/<role>`. */
export interface Spending {
  requests: number;
  tokens: number;
  cost: number;
}

export interface ReplyCacheOptions<Reply extends PaidReply> {
  /** Reads a line. @throws if the line has another form */
  read(line: unknown): ReplyLine<Reply>;
  /** Whether a reply answers later requests with the same key; other replies are only counted. */
  answers(reply: Reply): boolean;
  /** Receives the error if a reply cannot be written; the reply is used nevertheless. */
  onUnwritten(error: Error): void;
}

export class ReplyCache<Reply extends PaidReply> {
  private readonly known = new Map<string, Reply>();
  private readonly running = new Map<string, Promise<Reply>>();
  private readonly spending = new Map<string, Spending>();
  private readonly log: LineLog;

  /**
   * Opens or creates the file.
   * @throws UserError if the file cannot be read or opened
   */
  constructor(
    file: string,
    private readonly options: ReplyCacheOptions<Reply>,
  ) {
    this.log = new LineLog(file, { fsync: 'explicit' });
    if (existsSync(file))
      for (const { value } of readValues(file, line => options.read(line)))
        this.count(value.key, value.account, value.reply);
  }

  /** Returns what has been spent on an account; the returned object is updated later. */
  spentOn(account: string): Spending {
    let spent = this.spending.get(account);
    if (!spent) this.spending.set(account, (spent = { requests: 0, tokens: 0, cost: 0 }));
    return spent;
  }

  /** Returns the known reply to a request, or that of `ask`. If the same request is running, waits for its reply. */
  async replied(key: string, ask: () => Promise<Reply>): Promise<Reply> {
    const known = this.known.get(key);
    if (known) return { ...known, cached: true, tokens: 0, cost: 0 };
    const running = this.running.get(key);
    if (running) return running.then(first => ({ ...first, cached: this.options.answers(first), tokens: 0, cost: 0 }));
    const asking = ask();
    this.running.set(key, asking);
    try {
      return await asking;
    } finally {
      this.running.delete(key);
    }
  }

  /** Counts and stores an answered request. */
  record(key: string, account: string, reply: Reply): void {
    this.count(key, account, reply);
    const { cached: _, ...stored } = reply;
    try {
      this.log.append({ key, account, ...stored });
    } catch (error) {
      this.options.onUnwritten(error as Error);
    }
  }

  close(): void {
    this.log.close();
  }

  private count(key: string, account: string, reply: Reply): void {
    if (this.options.answers(reply)) this.known.set(key, reply);
    const spent = this.spentOn(account);
    spent.requests++;
    spent.tokens += reply.tokens;
    spent.cost += reply.cost;
  }
}
