// Rules for the URL of a Tinker API server, and the default name of the environment variable that holds the server's
// API key. The configuration, the terminal and the editor share these rules.

/** Environment variable that holds a server's API key, unless the user names another variable. */
export const defaultKeyVariable = 'TINKER_API_KEY';

/** Whether a text is an http(s) URL without user, path or query. */
export function isServerUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, pathname, search, hash } = new URL(text);
  return /^https?:$/.test(protocol) && /^\/*$/.test(pathname) && username + password + search + hash === '';
}

/** Returns a server's URL without a trailing slash. */
export const withoutSlash = (url: string): string => url.replace(/\/+$/, '');
