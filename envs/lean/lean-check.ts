// Parses and interprets Lean's replies. The REPL of leanprover-community defines their format; the Kimina server wraps
// the same replies.

export interface Position {
  line: number;
  column: number;
}

export interface LeanMessage {
  severity: string;
  data: string;
  pos?: Position;
  endPos?: Position | null;
}

/**
 * The result of checking a script: Lean's messages and how often `sorry` occurs, or the reason why the check failed.
 */
export type Check = { messages: LeanMessage[]; sorries: number } | { failure: string; timedOut: boolean };

/** A script in two parts, a header and a body. A server can cache Lean's state after the header. */
export interface Script {
  /** Import lines only. */
  header: string;
  body: string;
}

/** Checks scripts. `check` never rejects; it returns a failure instead. */
export interface Checker {
  check(script: Script): Promise<Check>;
}

export interface Verdict {
  /** The tactics are valid so far, but goals may remain. */
  accepted: boolean;
  /** The proof is complete. */
  success: boolean;
  timedOut: boolean;
  messages: LeanMessage[];
}

export const isUnsolved = ({ severity, data }: LeanMessage): boolean =>
  severity === 'error' && data.toLowerCase().includes('unsolved goals');

/**
 * Returns the verdict on a script. Accepted: no errors except unsolved goals. Success: no errors at all. A script that
 * contains `sorry` is neither accepted nor successful.
 */
export function verdictOf(check: Check): Verdict {
  if ('failure' in check) {
    const messages = [{ severity: 'error', data: check.failure }];
    return { accepted: false, success: false, timedOut: check.timedOut, messages };
  }
  const errors = check.messages.filter(({ severity }) => severity === 'error');
  const accepted = check.sorries === 0 && errors.every(isUnsolved);
  return { accepted, success: accepted && errors.length === 0, timedOut: false, messages: check.messages };
}

/**
 * Parses a reply of the REPL; the reply's format may be invalid. `lineOffset` is added to the line numbers of
 * positions.
 */
export function checkOf(reply: unknown, lineOffset = 0): Check {
  if (reply === null || typeof reply !== 'object') return { failure: 'Lean gave no answer.', timedOut: false };
  const { message, messages, sorries } = reply as { message?: unknown; messages?: unknown; sorries?: unknown };
  if (typeof message === 'string') return { failure: message, timedOut: false };
  const shifted = (pos: Position | null | undefined) => pos && { ...pos, line: pos.line + lineOffset };
  const list = Array.isArray(messages) ? (messages as Partial<LeanMessage>[]) : [];
  return {
    messages: list.map(({ severity, data, pos, endPos }) => ({
      severity: String(severity ?? 'info').toLowerCase(),
      data: String(data ?? ''),
      pos: shifted(pos) ?? undefined,
      endPos: shifted(endPos) ?? undefined,
    })),
    sorries: Array.isArray(sorries) ? sorries.length : 0,
  };
}
