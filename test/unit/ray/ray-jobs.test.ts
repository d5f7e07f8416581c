// The client of the Ray Jobs REST API against a peer that answers as Ray 2.57.0: every request, and every way in which
// an answer can be missing, refused or garbled.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RayJobs, RayUnreachable } from '../../../extension/ray/ray-jobs';
import { rayAddress, rayServer } from '../../../extension/ray/ray-server';
import { isOver, type JobRequest } from '../../../extension/ray/ray-wire';
import { UserError } from '../../../extension/common/user-error';
import { secrets } from '../../../extension/node/secrets';
import { RayPeer } from '../../support/ray-peer';
import { until } from '../../support/terminal';

let peer: RayPeer;
let jobs: RayJobs;
beforeEach(async () => {
  peer = await RayPeer.start();
  jobs = new RayJobs(rayServer(peer.url, {}));
});
afterEach(() => peer.close());

const job = (id: string, entrypoint: string, more: Partial<JobRequest> = {}): JobRequest => ({
  entrypoint,
  submission_id: id,
  metadata: { ragen_run: 'r' },
  runtime_env: {},
  entrypoint_num_cpus: 1,
  entrypoint_num_gpus: 0,
  entrypoint_resources: {},
  ...more,
});
/** The message of the UserError with which a request fails. */
const refusal = async (request: Promise<unknown>): Promise<string> => {
  const error: unknown = await request.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(UserError);
  return (error as UserError).message;
};
const ended = (id: string) => until(`the end of ${id}`, () => isOver({ status: peer.statusOf(id)! }));

test('a job is submitted, runs, and ends with its log and exit code', async () => {
  expect(await jobs.version()).toBe('2.57.0');
  await jobs.submit(job('a', 'echo said; exit 3', { metadata: { name: 'one' } }));
  await ended('a');
  expect(await jobs.get('a')).toMatchObject({ status: 'FAILED', driver_exit_code: 3, metadata: { name: 'one' } });
  expect(await jobs.logs('a')).toBe('said\n');
  expect((await jobs.list()).map(({ submission_id }) => submission_id)).toEqual(['a']);
  expect(await jobs.stop('a')).toBe(false);
  expect(await jobs.remove('a')).toBe(true);
  expect(await jobs.get('a')).toBeNull();
  expect(await jobs.logs('a')).toBeNull();
});

test('a running job is stopped, and a job without free resources waits', async () => {
  await jobs.submit(job('a', 'sleep 60', { entrypoint_num_cpus: 2 }));
  await jobs.submit(job('b', 'true'));
  await until('a runs', () => peer.statusOf('a') === 'RUNNING');
  expect((await jobs.get('b'))?.status).toBe('PENDING');
  expect(await jobs.stop('a')).toBe(true);
  await ended('a');
  expect((await jobs.get('a'))?.status).toBe('STOPPED');
  await ended('b');
  expect((await jobs.get('b'))?.status).toBe('SUCCEEDED');
});

test('no request has the header that makes Ray refuse it as browser traffic', async () => {
  await jobs.submit(job('a', 'true'));
  await jobs.get('a');
  expect(peer.requests.flatMap(({ headers }) => Object.keys(headers)).filter(name => name.startsWith('sec-'))).toEqual(
    [],
  );
});

describe('a lost answer to a submission', () => {
  test('does not submit the job twice', async () => {
    peer.fault = method => (method === 'POST' ? 'cut after' : undefined);
    await jobs.submit(job('a', 'true'));
    expect(peer.submitted).toHaveLength(1);
    expect(peer.requests.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });

  test('is an error if the job did not arrive', async () => {
    peer.fault = method => (method === 'POST' ? 'cut before' : undefined);
    await expect(jobs.submit(job('a', 'true'))).rejects.toThrow(RayUnreachable);
    expect(peer.submitted).toEqual([]);
  });
});

test('an id that is taken is refused with the reason, the last line of Ray’s traceback', async () => {
  await jobs.submit(job('a', 'true'));
  expect(await refusal(jobs.submit(job('a', 'true')))).toMatch(
    /answered 500 to POST .*\(ValueError: Job .* already exists/,
  );
});

describe('answers that are no answers', () => {
  const texts: [name: string, status: number, text: string, message: RegExp][] = [
    ['no JSON', 200, '<html>login</html>', /unexpected answer .*Ray dashboard/],
    ['JSON of another service', 200, '{"status":"ok"}', /unexpected answer .*\(\w+: /],
    ['a state that does not exist', 200, '{"submission_id":"a","status":"LOST"}', /\(status: /],
    ['a redirect to a login', 302, '', /answered 302/],
    ['an error', 500, 'Traceback\n  File x\nRuntimeError: no agent', /answered 500 .*\(RuntimeError: no agent\)/],
    ['a missing path', 404, '404: Not Found', /answered 404/],
    ['access denied', 403, 'no', /refuses access \(403\): set RAY_AUTH_TOKEN/],
    ['control characters', 500, 'a\u001b[31mb', /a\ufffd\[31mb/],
  ];
  test.each(texts)('%s', async (_, status, text, message) => {
    peer.fault = () => ({ status, text });
    const said = await refusal(jobs.get('a'));
    expect(said).toMatch(message);
    expect(said).toContain(peer.url);
  });

  test('another version of the API', async () => {
    peer.fault = () => ({ status: 200, text: '{"version":"7","ray_version":"9.0"}' });
    expect(await refusal(jobs.version())).toMatch(/\(Ray 9\.0\) has version 7 .* instead of 4/);
  });

  test('silence', async () => {
    peer.fault = () => 'silent';
    const hasty = new RayJobs(rayServer(peer.url, {}), 100);
    expect(await refusal(hasty.list())).toMatch(/cannot be reached \(no answer within 0\.1 s\)/);
  });

  test('a port on which nothing listens', async () => {
    const server = createServer();
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise(resolve => server.close(resolve));
    const nobody = new RayJobs(rayServer(`http://127.0.0.1:${port}`, {}));
    expect(await refusal(nobody.version())).toMatch(/cannot be reached \(ECONNREFUSED\): start Ray/);
  });
});

describe('addresses and access', () => {
  test.each([
    ['http://head:8265', 'http://head:8265'],
    ['http://head:8265/', 'http://head:8265'],
    ['https://Example.com/ray//', 'https://example.com/ray'],
  ])('%s is %s', (text, address) => expect(rayAddress(text)).toBe(address));

  test.each(['head:8265', 'ray://head:10001', 'http://user@head:8265', 'http://head:8265?a=1', ''])(
    '%j is refused',
    text => expect(() => rayAddress(text)).toThrow(UserError),
  );

  test('a password in an address is not repeated', () => {
    expect(() => rayAddress('http://user:hunter2@head:8265')).toThrow(/a URL with a password.*RAY_AUTH_TOKEN/);
    expect(() => rayAddress('http://user:hunter2@head:8265')).not.toThrow(/hunter2/);
  });

  test('token and headers come from the environment, and are redacted', async () => {
    const token = 'tok-81f2c93a7b';
    await peer.close();
    peer = await RayPeer.start({ token });
    const env = { RAY_AUTH_TOKEN: token, RAY_JOB_HEADERS: '{"X-Tenant":"tenant-4711-x"}' };
    expect(await refusal(new RayJobs(rayServer(peer.url, {})).version())).toMatch(/refuses access \(401\)/);
    expect(await new RayJobs(rayServer(peer.url, env)).version()).toBe('2.57.0');
    expect(peer.requests.at(-1)?.headers['x-tenant']).toBe('tenant-4711-x');
    expect(secrets.text(`a ${token} b tenant-4711-x`)).toBe('a [redacted authorization] b [redacted x-tenant]');
  });

  test('headers that are no headers are refused', () => {
    for (const RAY_JOB_HEADERS of ['x', '[]', '{"a":1}'])
      expect(() => rayServer('http://head:8265', { RAY_JOB_HEADERS })).toThrow(/RAY_JOB_HEADERS is not/);
  });
});
