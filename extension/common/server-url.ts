// Addresses of servers of the Tinker API, and names of the variables with their keys, as the configuration, the terminal
// and the editor accept them.

/** Environment variable with a server's API key, if none is named. */
export const defaultKeyVariable = 'TINKER_API_KEY';

/** Whether a text is an http(s) URL without user, path or query. */
export function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && /^\/*$/.test(pathname) && username + password + search + hash === '';
}

/** Returns a server's URL without a trailing slash. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, '');
