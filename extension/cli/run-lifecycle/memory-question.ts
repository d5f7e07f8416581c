// Asks before a run starts whose plan exceeds the available memory. In a terminal the user answers; otherwise the start
// is refused, unless --yes is given.
import { createInterface } from 'node:readline/promises';
import { UserError } from '../../common/user-error';
import { formatShortage, MemoryShortage, type PlannedMemory } from '../../run-data/memory-shortage';

export interface ShortageFlags {
  json?: boolean;
  /** Start although the plan exceeds the available memory. */
  yes?: boolean;
}

/** The terminal of this process, replaceable in tests. */
export interface Terminal {
  /** Whether a user can answer a question. */
  isInteractive: boolean;
  ask(question: string): Promise<string>;
  print(line: string): void;
}

const ownTerminal: Terminal = {
  isInteractive: process.stdin.isTTY && process.stderr.isTTY,
  async ask(question) {
    const lines = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return await lines.question(question);
    } finally {
      lines.close();
    }
  },
  print: line => void process.stderr.write(`${line}\n`),
};

/**
 * Returns if the run is to be started.
 * @throws MemoryShortage without an interactive terminal and without --yes; UserError if the user answers no
 */
export async function acceptShortage(
  memory: PlannedMemory,
  { json, yes }: ShortageFlags,
  terminal = ownTerminal,
): Promise<void> {
  if (yes) return terminal.print(`note: memory: ${formatShortage(memory)}`);
  if (json || !terminal.isInteractive) throw new MemoryShortage(memory);
  const answer = await terminal.ask(`Memory: ${formatShortage(memory)}. Start anyway? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new UserError('memory: the run was not started: change the configuration, or start the run with --yes');
}
