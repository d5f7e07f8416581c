// Redaction of the secrets known to a process: encodings, split texts, values, names, and texts that are not secrets.
import { describe, expect, test } from 'vitest';
import { Secrets } from '../../../extension/node/secrets';

const key = 'gym/K3y+"with" a\\slash'.replaceAll(' ', '_');
const env = { GYM: key, OPENAI_API_KEY: 'sk-1122334455667788', RAGEN_SECRET_NAMES: 'GYM', PATH: '/usr/bin' };
const secrets = new Secrets(env);
const base64 = (text: string) => Buffer.from(text).toString('base64');

describe('a secret', () => {
  test.each([
    ['as it is', key],
    ['in JSON', JSON.stringify(key).slice(1, -1)],
    ['in a URL', encodeURIComponent(key)],
    ['in hexadecimal digits', Buffer.from(key).toString('hex')],
    ['in capital ones', Buffer.from(key).toString('hex').toUpperCase()],
  ])('is found %s', (_, form) => expect(secrets.text(`a ${form} b ${form}`)).toBe('a [redacted GYM] b [redacted GYM]'));

  test.each(['', 'x', 'me', 'Bearer ', 'user:pass:'])('is found in base64 after %j', before => {
    for (const after of ['', '!', '!!', ' and more'])
      for (const text of [base64(before + key + after), Buffer.from(before + key + after).toString('base64url')]) {
        const cleared = secrets.text(text);
        expect(cleared).toContain('[redacted GYM]');
        expect(cleared.replace('[redacted GYM]', '').length).toBeLessThanOrEqual(
          text.length - 4 * Math.floor(key.length / 3 - 1),
        );
      }
  });

  test('is found in nested values and in property names, which stay valid JSON', () => {
    const value = { a: [1, { [key]: `x${key}`, n: null }], b: 'plain', c: new Float32Array(2) };
    expect(secrets.value(value)).toEqual({
      a: [1, { '[redacted GYM]': 'x[redacted GYM]', n: null }],
      b: 'plain',
      c: value.c,
    });
    expect(JSON.parse(secrets.json({ a: `"${key}"`, b: 1 }))).toEqual({ a: '"[redacted GYM]"', b: 1 });
  });

  test('is found across chunks, wherever the text is split', () => {
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

  test('is found as the longer one when one secret starts with another', () => {
    const two = new Secrets({ A_TOKEN: 'abcdefgh12345', B_TOKEN: 'abcdefgh123456789' });
    expect(two.text('abcdefgh123456789 abcdefgh12345')).toBe('[redacted B_TOKEN] [redacted A_TOKEN]');
  });
});

describe('a secret is known', () => {
  test.each([
    ['HF_TOKEN', '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', 'letters alone, as the hub’s are'],
    ['OPENAI_API_KEY', 'sk-1122334455667788\n', 'with the end of a line, as a file gives it'],
    ['PGPASSWORD', 'QN9CpscYi0zaEIJrp7EY', 'a password of a tool’s own name'],
    ['MYSQL_PWD', 'cpFr2jUssFMEHP3M4V5h', 'a password in short'],
    ['GH_PAT', 'ghp_cEokd5ihu9lEmJcADwyQNeLn', 'an access token in short'],
  ])('%s=%j: %s', (name, value) => {
    const known = new Secrets({ [name]: value });
    expect(known.text(`a ${value.trim()} b`)).toBe(`a [redacted ${name}] b`);
  });

  test.each([
    ['HTTPS_PROXY', 'http://me:Zq0KPIxDjk%2BMy@127.0.0.1:3128', ['Zq0KPIxDjk%2BMy', 'Zq0KPIxDjk+My']],
    ['DATABASE_URL', 'postgres://me:Zq0KPIxDjkMyKE@db/x?y=1', ['Zq0KPIxDjkMyKE']],
    ['PIP_INDEX_URL', 'https://ghp_cEokd5ihu9lEmJcADwyQ@pypi.example/simple', ['ghp_cEokd5ihu9lEmJcADwyQ']],
  ])('the password of the address in %s', (name, value, forms) => {
    const known = new Secrets({ [name]: value });
    for (const form of forms) expect(known.text(`a ${form} b`)).toBe(`a [redacted ${name}] b`);
    expect(known.text(`${value} b`)).not.toContain(forms[0]);
  });

  test.each([
    ['DATABASE_URL', 'postgres://postgres:postgresdatabase@localhost/db', 'postgres:postgresdatabase'],
    ['DATABASE_URL', 'mysql://app:secret7@db:3306/x', 'app:secret7'],
    ['REDIS_URL', 'redis://:pw1@cache:6379', ':pw1@cache:6379'],
    ['DSN', 'me:Zq0K%2B1@db.example:5432/x', 'me:Zq0K+1'],
    ['DSN', 'me:pw@db', 'me:pw@db'],
    ['DSN', 'me:Zq0KPIxDjkMyKE@db.example', 'Zq0KPIxDjkMyKE'],
  ])('a short password of the address in %s=%s, where it stands behind its user', (name, value, form) => {
    const known = new Secrets({ [name]: value });
    expect(known.text(`a ${form} b`)).toBe(`a [redacted ${name}] b`);
    expect(known.text(`to ${value}`)).toContain(`[redacted ${name}]`);
    const words = 'the app of postgres, me, pw, pw1, secret7 and postgres…';
    expect(known.text(words)).toBe(words);
  });

  test("in lower-case URL escapes, and with JSON's escaped slashes", () => {
    const known = new Secrets({ AWS_SECRET_ACCESS_KEY: 'abcd1234/EFGH+ijkl' });
    for (const form of ['abcd1234%2fEFGH%2bijkl', 'abcd1234\\/EFGH+ijkl'])
      expect(known.text(form)).toBe('[redacted AWS_SECRET_ACCESS_KEY]');
  });
});

describe('of a secret truncated within a text', () => {
  const cut = new Secrets({ FOO_TOKEN: 'hS1Jx9cJNtgsIGvQ77Zz' });
  test.each(['…', '…" in step', '... and more', '… (further output in this second was dropped)\n'])(
    'nothing is left before %j',
    end => {
      for (let length = 8; length < 20; length++)
        expect(cut.text(`x ${'hS1Jx9cJNtgsIGvQ77Zz'.slice(0, length)}${end}`)).toBe(`x [redacted FOO_TOKEN]${end}`);
    },
  );

  test('16 characters are redacted at the end of a text; fewer, which may be words, are left', () => {
    for (let length = 16; length < 20; length++)
      expect(cut.text(`x ${'hS1Jx9cJNtgsIGvQ77Zz'.slice(0, length)}`)).toBe('x [redacted FOO_TOKEN]');
    const telling = new Secrets({ JWT_SECRET: 'development-secret-2024' });
    expect(telling.text('the house is under development')).toBe('the house is under development');
  });

  test('nothing is left when a stream ends there', () => {
    const stream = cut.stream();
    expect(stream.take('x hS1Jx9cJNtgs') + stream.rest()).toBe('x [redacted FOO_TOKEN]');
  });

  test('fewer than 8 characters, and texts with many marks, stay unchanged', () => {
    const text = 'hS1Jx9c… and … and ... '.repeat(100);
    expect(cut.text(text)).toBe(text);
  });
});

test('a variable named by a configuration contains a secret', () => {
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
  ['a long plain word', { DB_PASSWORD: 'thedatabaseofthispostgres' }],
  ['an address without a password', { HTTP_PROXY: 'http://proxy.example:3128/a@b1' }],
  ['an address without a scheme or a password', { DATABASE: 'db.example:5432/x@y', MAIL: 'mailto:me@example.org' }],
  ['a package', { PEER: 'npm:react@18.2.0', IMAGE: 'image:tag@sha256:ab12' }],
  ['a path of Windows', { SSH_KEY: 'C:\\Users\\me1\\id_ed25519' }],
  ['an address', { TOKEN: 'https://example.org/v1' }],
  ['of a name that says nothing', { EDITOR_THEME: 'solarized-dark-2' }],
])('%s is not a secret', (_, variables: Record<string, string>) => {
  const text = Object.values(variables).join(' ');
  expect(new Secrets(variables).text(text)).toBe(text);
});

test('a value without a secret is returned as the same object', () => {
  const value = { text: 'x'.repeat(1000), list: [1, 2, { a: 'b' }] };
  expect(secrets.value(value)).toBe(value);
  expect(secrets.json(value, 1)).toBe(JSON.stringify(value, null, 1));
  const none = new Secrets({ PATH: '/usr/bin' });
  expect([none.value(value), none.text('sk-1122334455667788'), none.stream().take('sk-')]).toEqual([
    value,
    'sk-1122334455667788',
    'sk-',
  ]);
});
