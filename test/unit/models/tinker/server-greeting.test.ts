// The first requests to a server: what it says about itself, and for each way in which it cannot be used one sentence
// with the remedy.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { explainFailure } from '../../../../extension/models/tinker/connection-failures';
import { greetServer, type GreetingOptions } from '../../../../extension/models/tinker/server-greeting';
import { TinkerPeer, type PeerOptions } from '../../../support/tinker-peer';
import { selfSigned } from '../../../support/self-signed';

let peer: TinkerPeer | undefined;
afterEach(async () => {
  await peer?.stop();
  peer = undefined;
});
const start = async (options: Partial<PeerOptions> = {}): Promise<string> => {
  peer = await TinkerPeer.start({ vocabSize: 16, ...options });
  return peer.url;
};
const greet = (url: string, more: Partial<GreetingOptions> = {}) =>
  greetServer({ url, key: null, keyName: 'A_KEY', timeoutMs: 5000, signal: new AbortController().signal, ...more });
const key = 'a-key-of-the-server';

test('a server is described by its name, models and round trip', async () => {
  const found = await greet(await start({ offers: ['a/b', 'c/d'] }));
  expect(found).toMatchObject({
    server: { name: 'Tinker peer', version: '1.0.0' },
    key: 'none',
    models: [
      { name: 'a/b', max_context_length: null },
      { name: 'c/d', max_context_length: null },
    ],
  });
  expect(found.round_trip_ms).toBeGreaterThan(0);
  expect(Math.abs(found.clock_difference_s!)).toBeLessThanOrEqual(1);
  expect(peer!.requests.filter(({ path }) => path === 'healthz')).toHaveLength(5);
});

test('a key is accepted, or not checked by a server without one', async () => {
  expect((await greet(await start({ key }), { key })).key).toBe('accepted');
  await peer!.stop();
  expect((await greet(await start(), { key })).key).toBe('not checked');
});

test.each([
  ['no key', null, /^engine: http:\S+ requires an API key: set the variable A_KEY to the key$/],
  ['a wrong key', 'wrong-key-of-nobody', /^engine: http:\S+ refuses the key of A_KEY: correct the key$/],
])('%s is refused by a server that checks it, without naming the key', async (_, given, sentence) => {
  const error = await greet(await start({ key }), { key: given }).catch((thrown: unknown) => thrown as Error);
  expect((error as Error).message).toMatch(sentence);
});

test('another server is recognised', async () => {
  const other = createServer((_, response) => void response.end('<html>'));
  await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve));
  const { port } = other.address() as AddressInfo;
  await expect(greet(`http://127.0.0.1:${port}`)).rejects.toThrow(
    'is not a server of the Tinker API (status 200 for get_server_capabilities): correct the URL',
  );
  await new Promise(resolve => other.close(resolve));
});

test('a certificate that this machine does not trust is refused, with the remedy', async () => {
  const url = await start({ tls: selfSigned() });
  await expect(greet(url)).rejects.toThrow(
    /^engine: https:\S+ has a certificate that this machine does not trust \([A-Z_]+\): set NODE_EXTRA_CA_CERTS to/,
  );
});

test('TLS on a server without it, and HTTP on a server with TLS, are refused', async () => {
  const plain = await start();
  await expect(greet(plain.replace('http', 'https'))).rejects.toThrow(/does not use TLS \(\w+\): write http:\/\//);
  await peer!.stop();
  const secure = await start({ tls: selfSigned() });
  await expect(greet(secure.replace('https', 'http'))).rejects.toThrow(/closes connections .*write https:\/\//);
});

test('a server that is not there, or silent, is refused with its address', async () => {
  const url = await start();
  peer!.fault = () => 'silent';
  await expect(greet(url, { timeoutMs: 100 })).rejects.toThrow(
    `engine: ${url} does not answer within 0.1 s: start the server, or check the host, port and firewall`,
  );
  await peer!.stop();
  await expect(greet(url)).rejects.toThrow(
    `engine: ${url} refuses connections (ECONNREFUSED): start the server, or correct the host and port`,
  );
});

test('an abort ends the requests with its reason', async () => {
  const url = await start();
  peer!.fault = () => 'silent';
  const stopped = new AbortController();
  const greeting = greet(url, { signal: stopped.signal });
  stopped.abort(new Error('enough'));
  await expect(greeting).rejects.toThrow('enough');
});

describe('the explanation of a failure', () => {
  const explain = (code: string) => explainFailure('https://gpu:8000', { code, name: 'Error', message: '' }, 1000);
  test.each([
    ['ENOTFOUND', 'the host gpu of https://gpu:8000 is not known (ENOTFOUND): correct the URL'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'certificate for another host'],
    ['CERT_HAS_EXPIRED', 'not valid now'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'NODE_EXTRA_CA_CERTS'],
    ['UND_ERR_CONNECT_TIMEOUT', 'does not answer within 1 s'],
    ['EHOSTUNREACH', 'cannot be reached (EHOSTUNREACH)'],
  ])('%s', (code, words) => {
    expect(explain(code)).toContain(words);
  });
});
