// Reads a log that a trainer is writing, and yields each value once. A trainer that returns to its checkpoint removes
// the newest lines of its logs and then writes other lines. The reader therefore remembers the newest lines that it has
// read. Before it reads on, it goes back to the last remembered line that is still in the file.
import { UserError } from '../../common/user-error';

/** A value of the log, and the byte offset after its line. */
interface LoggedValue<T> {
  value: T;
  next: number;
}

/** A line that was read: its byte range, and its value as JSON. */
interface ReadLine {
  start: number;
  next: number;
  json: string;
}

/**
 * Maximum number of remembered lines. A trainer that returns to its newest checkpoint removes only lines that were
 * written since this checkpoint.
 */
const mostRemembered = 1000;

export class FollowedLines<T> {
  private offset = 0;
  private readonly remembered: ReadLine[] = [];

  /** @param read yields the values of the log from a byte offset on */
  constructor(private readonly read: (offset: number) => Generator<LoggedValue<T>>) {}

  /**
   * Yields the values that are new since the last call.
   * @throws the UserError that `read` throws, unless the trainer removed a line while `read` was reading this line
   */
  *unread(): Generator<T> {
    this.goBack();
    try {
      for (const { value, next } of this.read(this.offset)) {
        this.remembered.push({ start: this.offset, next, json: JSON.stringify(value) });
        if (this.remembered.length > mostRemembered) this.remembered.shift();
        this.offset = next;
        yield value;
      }
    } catch (error) {
      if (!this.goBack()) throw error;
    }
  }

  /** Forgets the lines that are no longer in the file; returns whether there were such lines. */
  private goBack(): boolean {
    const before = this.offset;
    for (let last = this.remembered.at(-1); last && !this.isUnchanged(last); last = this.remembered.at(-1)) {
      this.offset = last.start;
      this.remembered.pop();
    }
    return this.offset < before;
  }

  private isUnchanged({ start, next, json }: ReadLine): boolean {
    try {
      for (const found of this.read(start)) return found.next === next && JSON.stringify(found.value) === json;
      return false;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return false;
    }
  }
}
