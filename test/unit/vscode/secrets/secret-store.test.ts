// Secrets that the editor stores for runs: values only in its secret storage, names beside them, and only valid
// variable names.
import { expect, test } from 'vitest';
import { SecretStore, secretNameProblem, secretProblem } from '../../../../extension/vscode/secrets/secret-store';

function editor() {
  const storage = new Map<string, string>();
  const memory = new Map<string, string[]>();
  const secrets = new SecretStore(
    {
      get: key => Promise.resolve(storage.get(key)),
      store: (key, value) => Promise.resolve(void storage.set(key, value)),
      delete: key => Promise.resolve(void storage.delete(key)),
    },
    {
      get: (key, fallback) => memory.get(key) ?? fallback,
      update: (key, names) => Promise.resolve(void memory.set(key, names)),
    },
  );
  return { storage, memory, secrets };
}

test('a key is stored, provided by its name, replaced and deleted; only its name is stored outside the secret storage', async () => {
  const { storage, memory, secrets } = editor();
  expect(await secrets.variables()).toEqual({});
  await secrets.keep('OPENAI_API_KEY', 'sk-first');
  await secrets.keep('HF_TOKEN', 'hf_x');
  await secrets.keep('OPENAI_API_KEY', 'sk-second');
  expect(secrets.names).toEqual(['HF_TOKEN', 'OPENAI_API_KEY']);
  expect(await secrets.variables()).toEqual({ HF_TOKEN: 'hf_x', OPENAI_API_KEY: 'sk-second' });
  expect(JSON.stringify([...memory])).not.toMatch(/sk-|hf_/);
  await secrets.keep('OPENAI_API_KEY', '');
  expect(secrets.names).toEqual(['HF_TOKEN']);
  expect([...storage.values()]).toEqual(['hf_x']);
  storage.clear(); // as when the key ring was cleared elsewhere
  expect(await secrets.variables()).toEqual({});
});

test('names are variable names, excluding those that change how programs run', () => {
  for (const name of ['HF_TOKEN', 'OPENAI_API_KEY', '_A', 'X9']) expect(secretNameProblem(name)).toBeUndefined();
  for (const name of ['', 'hf_token', 'A B', '9A', 'A=B', 'A\nB', 'A'.repeat(65)])
    expect(secretNameProblem(name)).toMatch(/use capital letters/);
  for (const name of [
    'PATH',
    'NODE_OPTIONS',
    'LD_PRELOAD',
    'DYLD_INSERT_LIBRARIES',
    'ELECTRON_RUN_AS_NODE',
    'NPM_CONFIG_X',
  ])
    expect(secretNameProblem(name)).toMatch(/cannot be stored as a key/);
});

test('an invalid value is refused without being repeated', () => {
  expect(secretProblem('sk-aB1_x.y')).toBeUndefined();
  expect(secretProblem('')).toBeUndefined();
  for (const value of ['two words', 'täst', 'line\nbreak']) expect(secretProblem(value)).not.toContain(value);
});
