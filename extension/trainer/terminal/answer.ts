// How every command of the terminal ends: with one JSON document (--json) or words for people on standard output, or with one
// sentence on standard error, exit code 1 and, with --json, the same sentence as a document {"error": {"message"}}.
import { UserError } from '../../protocol/user-error';
import { ConfigError } from '../config/config-error';

export interface Answer {
  /** The JSON document of --json. */
  document: unknown;
  /** The same for people. */
  words: string;
  /** Why the run failed: goes to standard error, with exit code 1. */
  failed?: string;
}

/** Runs a command and gives its answer in the form asked for. */
export async function answer(flags: { json?: boolean }, command: () => Promise<Answer>): Promise<void> {
  try {
    const { document, words, failed } = await command();
    if (flags.json) process.stdout.write(`${JSON.stringify(document)}\n`);
    else process.stdout.write(`${words}\n`);
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
  if (!(error instanceof ConfigError)) return { message: error.message };
  const { message, file, line, column, key, problems } = error;
  return { message, file, line, column, key, problems };
}
