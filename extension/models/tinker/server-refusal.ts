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

/** Names of the configuration keys for the URL of a server and for the variable that holds its API key. */
export interface KeyNames {
  url: string;
  key: string;
  /** Key of the base model's name. */
  model: string;
}

export const engineKeyNames: KeyNames = {
  url: 'workbench.engine_url',
  key: 'workbench.engine_api_key_env',
  model: 'workbench.engine_model',
};

/**
 * Returns the error to throw for a request to `path` that the server refused.
 * @param detail the server's own reason
 */
export function refusalOf(
  { url, key, keyNames = engineKeyNames }: { url: string; key: string | null; keyNames?: KeyNames },
  path: string,
  detail: string,
  status?: number,
): ServerRefusal {
  const what = shownText(detail);
  if (status !== 401 && status !== 403) return new ServerRefusal(`engine: ${url} refused ${path}: ${what}`, what);
  const problem = key === null ? `requires an API key (${what}): set` : `refuses the key (${what}): correct`;
  return new ServerRefusal(`engine: ${url} ${problem} the variable that ${keyNames.key} names`, what);
}
