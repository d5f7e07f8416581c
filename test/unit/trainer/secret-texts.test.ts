// Texts without the secrets that a process knows: forms, pieces, values, names, and what is no secret.
import { describe, expect, test } from 'vitest';
import { Secrets } from '../../../extension/trainer/secrets';

const key = 'gym/K3y+"with" a\\slash'.replaceAll(' ', '_');
const env = { GYM: key, OPENAI_API_KEY: 'sk-1122334455667788', RAGEN_SECRET_NAMES: 'GYM', PATH: '/usr/bin' };
const secrets = new Secrets(env);
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a secret is found', () => {
  test.each([
    ['as it is', key],
    ['in JSON', JSON.stringify(key).slice(1, -1)],
    ['in a URL', encodeURIComponent(key)],
    ['in hexadecimal digits', Buffer.from(key).toString('hex')],
    ['in capital ones', Buffer.from(key).toString('hex').toUpperCase()],
  ])('%s', (_, form) => expect(secrets.text(`a ${form} b ${form}`)).toBe('a [redacted GYM] b [redacted GYM]'));

  test.each(['', 'x', 'me', 'Bearer ', 'user:pass:'])('in base64 behind %j', before => {
    for (const after of ['', '!', '!!', ' and more'])
      for (const text of [base64(before + key + after), Buffer.from(before + key + after).toString('base64url')]) {
        const cleared = secrets.text(text);
        expect(cleared).toContain('[redacted GYM]');
        expect(cleared.replace('[redacted GYM]', '').length).toBeLessThanOrEqual(text.length - 4 * Math.floor(key.length / 3 - 1)); // prettier-ignore
      }
  });

  test('in values, however deep, names of properties too, which stay JSON', () => {
    const value = { a: [1, { [key]: `x${key}`, n: null }], b: 'plain', c: new Float32Array(2) };
    expect(secrets.value(value)).toEqual({ a: [1, { '[redacted GYM]': 'x[redacted GYM]', n: null }], b: 'plain', c: value.c }); // prettier-ignore
    expect(JSON.parse(secrets.json({ a: `"${key}"`, b: 1 }))).toEqual({ a: '"[redacted GYM]"', b: 1 });
  });

  test('across pieces, wherever it is cut', () => {
    const text = `before ${key} between ${key}`;
    for (let cut = 0; cut <= text.length; cut++)
      for (const second of [cut, cut + 1, cut + 5]) {
        const stream = secrets.stream();
        const pieces = [text.slice(0, cut), text.slice(cut, second), text.slice(second)];
        const passed = pieces.map(piece => stream.take(piece)).join('') + stream.rest();
        expect(passed).toBe('before [redacted GYM] between [redacted GYM]');
      }
    const stream = secrets.stream();
    expect(stream.take('a line that is whole\n')).toBe('a line that is whole\n');
  });

  test('the longer one where one begins with another', () => {
    const two = new Secrets({ A_TOKEN: 'abcdefgh12345', B_TOKEN: 'abcdefgh123456789' });
    expect(two.text('abcdefgh123456789 abcdefgh12345')).toBe('[redacted B_TOKEN] [redacted A_TOKEN]');
  });
});

test('a variable that a configuration names holds one', () => {
  const named = new Secrets({ MY_SERVER: 'letmein-now', OTHER: 'something-else' });
  expect(named.text('letmein-now')).toBe('letmein-now');
  named.nameAllIn({ Far: { env_config: { api_key_env: 'MY_SERVER', url: 'OTHER' } } });
  expect(named.text('letmein-now something-else')).toBe('[redacted MY_SERVER] something-else');
});

test.each([
  ['short', { API_KEY: 'abc1234', RAGEN_SECRET_NAMES: 'API_KEY' }],
  ['a number', { MAX_TOKEN: '123456789012', RAGEN_SECRET_NAMES: 'MAX_TOKEN' }],
  ['a plain word', { DB_PASSWORD: 'postgresdatabase' }],
  ['a path', { PRIVATE_KEY: '/home/me/.ssh/id_ed25519' }],
  ['an address', { TOKEN: 'https://example.org/v1' }],
  ['of a name that says nothing', { EDITOR_THEME: 'solarized-dark-2' }],
])('what is %s is none', (_, variables: Record<string, string>) => {
  const text = Object.values(variables).join(' ');
  expect(new Secrets(variables).text(text)).toBe(text);
});

test('what holds none is returned itself', () => {
  const value = { text: 'x'.repeat(1000), list: [1, 2, { a: 'b' }] };
  expect(secrets.value(value)).toBe(value);
  expect(secrets.json(value, 1)).toBe(JSON.stringify(value, null, 1));
  const none = new Secrets({ PATH: '/usr/bin' });
  expect([none.value(value), none.text('sk-1122334455667788'), none.stream().take('sk-')]).toEqual([value, 'sk-1122334455667788', 'sk-']); // prettier-ignore
});
