// Rejects secrets in configurations, because the run manifest stores the complete configuration. A secret is recognised
// by the name of its key, or as a password in a URL. Messages never include the secret.
import type { RunConfig } from './schema';
import type { BrokenRule } from './broken-rule';

/**
 * Three patterns: names of keys that hold a secret; names of keys that hold the name of an environment variable; URLs
 * that contain a password.
 */
const secretKey = /(^|[_-])(api[_-]?key|passw(or)?d|secret|authorization|(access|auth|api|bearer|hub|hf)[_-]?token)$/i;
const variableOfKey = /(^|_)key_env$/;
const secretAddress = /^[a-z][a-z\d+.-]*:\/\/[^\s/?#@]*:[^\s/?#@]+@/i;

/**
 * Returns whether the value of a key with this name may be a secret. This includes keys whose value is the name of an
 * environment variable, because a user may write the secret there by mistake. Messages omit the values of all such
 * keys.
 */
export const mayHoldSecret = (name: string): boolean => secretKey.test(name) || variableOfKey.test(name);

/**
 * Returns one violation for each secret in the model path or in values that are passed to environments and services.
 */
export function secretRules({ custom_envs, model_info, model_path, workbench }: RunConfig): BrokenRule[] {
  const found = (value: unknown, key: string, name: string): BrokenRule[] => {
    if (typeof value === 'string') {
      if (secretAddress.test(value))
        return [
          {
            key,
            unshown: true,
            sentence: 'is a URL with a password, which would be saved in the run folder: remove the password',
          },
        ];
      if (secretKey.test(name) && value !== '')
        return [
          {
            key,
            unshown: true,
            sentence:
              'holds a secret, which would be saved in the run folder: move the secret to an environment variable; if the environment has the key api_key_env, set this key to the name of the variable',
          },
        ];
      if (variableOfKey.test(name) && !/^[A-Z_][A-Z0-9_]{0,63}$/.test(value))
        return [
          {
            key,
            unshown: true,
            sentence:
              'is not the name of an environment variable: give the upper-case name of the variable that holds the API key, not the API key itself',
          },
        ];
      return [];
    }
    if (Array.isArray(value)) return value.flatMap((item, i) => found(item, `${key}[${i}]`, name));
    if (typeof value !== 'object' || value === null) return [];
    return Object.entries(value).flatMap(([name, child]) => found(child, `${key}.${name}`, name));
  };
  return [
    ...Object.entries(custom_envs).flatMap(([tag, { env_config }]) =>
      found(env_config, `custom_envs.${tag}.env_config`, ''),
    ),
    ...Object.entries(model_info ?? {}).flatMap(([name, { generation_kwargs }]) =>
      found(generation_kwargs, `model_info.${name}.generation_kwargs`, ''),
    ),
    ...found(model_path, 'model_path', ''),
    ...found(workbench, 'workbench', ''),
  ];
}
