// The output of every command. A command that succeeds prints text or, with --json, one JSON document on standard
// output. A command that fails prints one sentence on standard error and exits with code 1; with --json it also prints
// {"error": {"message"}} on standard output.
import { UserError } from '../../common/user-error';
import { MemoryShortage } from '../../run-data/memory-shortage';
import { ConfigError } from '../../trainer/config/config-error';

export interface Answer {
  /** The document that --json prints. */
  document: unknown;
  /** The result as text for the terminal. */
  plainText: string;
  /** Reason why the command failed. It is printed to standard error, and the exit code is 1. */
  failed?: string;
}

/** Runs a command and prints its result in the requested form. */
export async function answer(flags: { json?: boolean }, command: () => Promise<Answer>): Promise<void> {
  try {
    const { document, plainText, failed } = await command();
    if (flags.json) process.stdout.write(`${JSON.stringify(document)}\n`);
    else process.stdout.write(`${plainText}\n`);
    if (failed !== undefined) {
      process.stderr.write(`${failed}\n`);
      process.exitCode = 1;
    }
  } catch (error) {
    process.exitCode = 1;
    const { message, stack } = error as Error;
    process.stderr.write(`${error instanceof UserError ? message : stack}\n`);
    if (flags.json) process.stdout.write(`${JSON.stringify({ error: errorDocument(error as Error) })}\n`);
  }
}

function errorDocument(error: Error): Record<string, unknown> {
  if (error instanceof MemoryShortage) return { message: error.message, memory: error.memory };
  if (!(error instanceof ConfigError)) return { message: error.message };
  const { message, file, line, column, key, problems } = error;
  return { message, file, line, column, key, problems };
}
