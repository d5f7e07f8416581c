// Determines the address of a Ray cluster's dashboard, and the headers of requests to the dashboard. A token and
// headers are read from the environment variables that Ray's own tools use. They are never written into an address, a
// configuration or a run folder.
import { isRecord, jsonOrNothing } from '../common/json';
import { UserError } from '../common/user-error';
import { secrets } from '../node/secrets';

export interface RayServer {
  /** URL without a trailing slash. */
  url: string;
  headers: Readonly<Record<string, string>>;
}

/**
 * Names of two environment variables, the same as in Ray 2.57. The first variable contains a token. The second variable
 * contains further headers as JSON.
 */
const [tokenVariable, headersVariable] = ['RAY_AUTH_TOKEN', 'RAY_JOB_HEADERS'];

/** Returns the canonical form of a dashboard's address. @throws UserError if the address is not a plain http(s) URL */
export function rayAddress(text: string): string {
  if (URL.canParse(text)) {
    const { protocol, username, password, search, hash, origin, pathname } = new URL(text);
    if (/^https?:$/.test(protocol) && username + password + search + hash === '')
      return `${origin}${pathname.replace(/\/+$/, '')}`;
  }
  const shown = URL.canParse(text) && new URL(text).password !== '' ? 'a URL with a password' : JSON.stringify(text);
  throw new UserError(
    `ray: the address is ${shown}: give the URL of the Ray dashboard without user or query, such as http://127.0.0.1:8265; a token belongs into ${tokenVariable}`,
  );
}

/**
 * Returns the server at an address, with the token and headers that `env` contains. @throws UserError if the headers
 * are invalid
 */
export function rayServer(address: string, env: NodeJS.ProcessEnv = process.env): RayServer {
  const headers: Record<string, string> = {};
  const token = env[tokenVariable]?.trim();
  if (token) headers.authorization = `Bearer ${token}`;
  const given = env[headersVariable]?.trim();
  if (given) {
    const parsed = jsonOrNothing(given);
    if (!isRecord(parsed) || Object.values(parsed).some(value => typeof value !== 'string'))
      throw new UserError(
        `ray: ${headersVariable} is not a JSON object of texts: set it to headers such as {"X-Name": "value"}`,
      );
    for (const [name, value] of Object.entries(parsed)) headers[name.toLowerCase()] = value as string;
  }
  for (const [name, value] of Object.entries(headers)) secrets.include(name, value.replace(/^Bearer /, ''));
  return { url: rayAddress(address), headers };
}
