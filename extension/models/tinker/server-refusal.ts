// Errors for requests that a server refuses or cannot execute. The message contains the server's own reason without
// secrets, and a remedy if one is known.
import { UserError } from '../../common/user-error';
import { secrets } from '../../node/secrets';

/** Maximum characters of a server's error text in a message. */
const mostDetail = 400;

/** Thrown for a request that the server refused or could not execute. */
export class ServerRefusal extends UserError {
  constructor(
    message: string,
    /** The server's own reason. */
    readonly detail: string,
  ) {
    super(message);
  }
}

/** Prepares a text from the server for an error message: one line, without secrets, truncated. */
export const shownText = (text: string): string => secrets.text(text.replace(/\s+/g, ' ').trim()).slice(0, mostDetail);

/**
 * Returns the error to throw for a request to `path` that the server refused.
 * @param detail the server's own reason
 */
export function refusalOf(
  { url, key }: { url: string; key: string | null },
  path: string,
  detail: string,
  status?: number,
): ServerRefusal {
  const what = shownText(detail);
  if (status !== 401 && status !== 403) return new ServerRefusal(`engine: ${url} refused ${path}: ${what}`, what);
  const problem = key === null ? `requires an API key (${what}): set` : `refuses the key (${what}): correct`;
  return new ServerRefusal(`engine: ${url} ${problem} the variable that workbench.engine_api_key_env names`, what);
}
