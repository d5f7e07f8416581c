// What Lean says of a script: the reply that both of its servers give, and what it amounts to. Replies have the form of
// leanprover-community's REPL, which the Kimina server wraps.

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

/** A script's check: Lean's messages, or why there are none. */
export type Check = { messages: LeanMessage[]; sorries: number } | { failure: string; timedOut: boolean };

/** A script in two parts, so that a server may keep the state after the first. */
export interface Script {
  /** Imports. */
  header: string;
  body: string;
}

/** Something that checks scripts. Never rejects: what goes wrong is part of the check. */
export interface Checker {
  check(script: Script): Promise<Check>;
}

export interface Verdict {
  /** The tactics so far hold, goals may be left. */
  accepted: boolean;
  /** The proof is complete. */
  success: boolean;
  timedOut: boolean;
  messages: LeanMessage[];
}

export const isUnsolved = ({ severity, data }: LeanMessage): boolean =>
  severity === 'error' && data.toLowerCase().includes('unsolved goals');

/** Accepted without errors other than unsolved goals, complete without any; `sorry` is neither. */
export function verdictOf(check: Check): Verdict {
  if ('failure' in check) {
    const messages = [{ severity: 'error', data: check.failure }];
    return { accepted: false, success: false, timedOut: check.timedOut, messages };
  }
  const errors = check.messages.filter(({ severity }) => severity === 'error');
  const accepted = check.sorries === 0 && errors.every(isUnsolved);
  return { accepted, success: accepted && errors.length === 0, timedOut: false, messages: check.messages };
}

/** A reply of the REPL, whatever it holds; lines of positions count from `lineOffset`. */
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
