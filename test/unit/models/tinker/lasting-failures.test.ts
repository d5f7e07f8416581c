// Failures that waiting cannot mend end a run at once, with the reason and the remedy; those that a restart of the server
// can cause are waited for.
import { afterEach, describe, expect, test } from 'vitest';
import { isLasting } from '../../../../extension/models/tinker/connection-failures';
import { endAll, faulty, load, samplesOf, started } from '../../../support/served-engine';
import { selfSigned } from '../../../support/self-signed';

afterEach(endAll);

/** An outage that no test waits for. */
const patient = { outageMs: 1e9, pauseMs: { first: 1e6, longest: 1e6 } };

test('an untrusted certificate ends the run at once, with the remedy', async () => {
  const { engine, outages } = await started({ tls: selfSigned() }, patient);
  await expect(engine.load(load)).rejects.toThrow(
    /^engine: https:\S+ has a certificate that this machine does not trust \([A-Z_]+\): set NODE_EXTRA_CA_CERTS to/,
  );
  expect(outages).toEqual([]);
});

test('TLS on a server without it ends the run at once', async () => {
  const { peer, engine: other } = await started();
  await other.stop();
  const { engine, outages } = await started({}, { ...patient, url: peer.url.replace('http', 'https') });
  await expect(engine.load(load)).rejects.toThrow(/^engine: https:\S+ does not use TLS \(\w+\): write http:\/\//);
  expect(outages).toEqual([]);
});

test('a key that no header can have ends the run at once, and is not shown', async () => {
  const { engine, outages } = await started({}, { ...patient, key: 'one\ntwo-of-the-key' });
  const error = await engine.load(load).catch((thrown: unknown) => thrown as Error);
  expect((error as Error).message).toMatch(
    /^engine: a request to http:\S+ cannot be sent \(.+\): check the URL, and the API key/,
  );
  expect((error as Error).message).not.toContain('two-of-the-key');
  expect(outages).toEqual([]);
});

test.each([
  [
    'no key',
    null,
    /^engine: http:\S+ requires an API key \(Invalid API key\): set the variable that workbench\.engine_api/,
  ],
  [
    'a wrong key',
    'wrong',
    /^engine: http:\S+ refuses the key \(Invalid API key\): correct the variable that workbench\./,
  ],
])('%s ends the run at once', async (_, key, sentence) => {
  const { engine, outages } = await started({ key: 'a-key-of-the-server' }, { ...patient, key });
  await expect(engine.load(load)).rejects.toThrow(sentence);
  expect(outages).toEqual([]);
});

test.each([401, 403])('a key that is withdrawn while a result is computed ends the run: status %s', async status => {
  for (const body of [{ detail: 'expired' }, { error: 'expired', category: 'user' }]) {
    const { peer, engine } = await started({}, { ...patient, key: 'a-key' });
    await engine.load(load);
    faulty(peer, 'retrieve_future', { status, body });
    await expect(engine.score('actor', [samplesOf('token-mean')[0]])).rejects.toThrow(/refuses the key \(expired\)/);
  }
});

describe('whether waiting cannot mend an error', () => {
  const lasting = (code: string, hasAnswered: boolean) => isLasting({ code, name: 'Error', message: '' }, hasAnswered);
  test.each([
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'CERT_HAS_EXPIRED',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'UND_ERR_INVALID_ARG',
  ])('%s: always', code => {
    expect([lasting(code, false), lasting(code, true)]).toEqual([true, true]);
  });
  test.each(['ENOTFOUND', 'EPROTO', 'ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'])(
    '%s: until the server has answered',
    code => {
      expect([lasting(code, false), lasting(code, true)]).toEqual([true, false]);
    },
  );
  test.each(['ECONNREFUSED', 'ECONNRESET', 'EAI_AGAIN', 'UND_ERR_SOCKET', 'UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT'])(
    '%s: never',
    code => {
      expect([lasting(code, false), lasting(code, true)]).toEqual([false, false]);
    },
  );
});
