// Malformed hub responses: entries without a path, names that are lists, lists that never end.
import { afterEach, expect, it, vi } from 'vitest';
import { UserError } from '../../../extension/common/user-error';
import { mostRequests } from '../../../extension/hub/hub-call';
import { HubClient } from '../../../extension/hub/hub-client';

const client = new HubClient({
  endpoint: 'https://hub.example',
  token: undefined,
  offline: false,
  silenceMs: 1000,
  retryMs: 0,
});
const info = {
  id: 'a/b',
  sha: 'a'.repeat(40),
  private: false,
  gated: false,
  likes: 1,
  downloads: 1,
  lastModified: '2026-01-01',
};
const file = { type: 'file', path: 'config.json', size: 10, oid: 'b'.repeat(40) };
let asked = 0;

/** Makes the hub list these entries, with a link to a next page if `next`. */
function listing(entries: unknown[], next = false): Promise<unknown> {
  asked = 0;
  const headers = {
    'content-type': 'application/json',
    ...(next && { link: '<https://hub.example/next>; rel="next"' }),
  };
  vi.stubGlobal('fetch', () =>
    Promise.resolve(new Response(JSON.stringify(asked++ === 0 ? info : entries), { headers })),
  );
  return client.list({ repo: 'a/b', revision: 'main' });
}
afterEach(() => vi.unstubAllGlobals());

it('a file without a path is skipped', async () => {
  const { path: _, ...nameless } = file;
  expect(await listing([nameless, { ...file, path: ['x'] }, file])).toMatchObject({ files: [{ name: 'config.json' }] });
});

it.each([{ oid: ['b'.repeat(40)] }, { oid: 5 }, { size: -1 }, { size: '10' }, { oid: '../x' }])(
  'an entry with %j is refused',
  async change => {
    await expect(listing([{ ...file, ...change }])).rejects.toThrow(/is not a Hugging Face hub/);
  },
);

it('an endless list is refused', async () => {
  await expect(listing([], true)).rejects.toThrow(UserError);
  expect(asked).toBe(mostRequests);
});

it('an endless page is aborted within its limit', async () => {
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull: controller => {
      sent += 2 ** 20;
      controller.enqueue(new Uint8Array(2 ** 20).fill(0x20));
    },
  });
  const headers = { 'content-type': 'application/json' };
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(endless, { headers })));
  await expect(client.list({ repo: 'a/b', revision: 'main' })).rejects.toThrow(
    'hub: https://hub.example answers with a file list of more than 16777216 bytes per page: check HF_ENDPOINT, or try again later',
  );
  expect(sent).toBeLessThan(2 ** 25);
});
