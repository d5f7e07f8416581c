// The API key of a server of the Tinker API, for commands that take --key-env and --no-key.
import { defaultKeyVariable } from '../../common/server-url';
import { UserError } from '../../common/user-error';
import { secrets } from '../../node/secrets';

/**
 * Reads the API key of a server from an environment variable, and registers it as a secret.
 * @param keyEnv name of the variable; undefined for the default variable, if it is set; null to send no key
 * @throws UserError if `keyEnv` names a variable that is not set
 */
export function serverKey(keyEnv: string | null | undefined): string | null {
  if (keyEnv === null) return null;
  const name = keyEnv ?? defaultKeyVariable;
  if (!/^[A-Z_][A-Z0-9_]{0,63}$/.test(name))
    throw new UserError(
      'engine: --key-env is not the name of an environment variable: give the upper-case name of the variable that holds the API key, not the API key itself',
    );
  secrets.name(name);
  const key = process.env[name]?.trim() ?? '';
  if (key === '' && keyEnv !== undefined)
    throw new UserError(
      `engine: the environment variable ${name} is not set: set it to the server’s key, or use --no-key`,
    );
  return key === '' ? null : key;
}
