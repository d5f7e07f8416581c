// The HTTP server of the small web: who may read an episode's pages, what a form stores, and what the text browser reads
// from HTML. Episodes at the same time do not meet.
import { request } from 'node:http';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Environment } from '../../../../envs/api/environment';
import { callAction } from '../../../../envs/api/tools/call-action';
import smallWeb from '../../../../envs/small-web/index';
import { maxFormBytes, SiteServer, type ServedSite } from '../../../../envs/small-web/server';
import type { Page } from '../../../../envs/small-web/site';
import { TextBrowser } from '../../../../envs/small-web/text-browser';
import { declaredTools } from '../../../../extension/environments/runtime/tools/declared-tools';
import { withTools } from '../../../../extension/environments/runtime/tools/tool-environment';

const pages = new Map<string, Page>([
  ['/', { title: 'Tom & "Co" <b>', text: 'a < b &amp; c', links: [{ text: "L'ordre", path: '/order' }] }],
  ['/order', { title: 'Order', text: 'Fill in.', links: [{ text: 'Start', path: '/' }], fields: ['code', 'x"y'] }],
]);
let server: SiteServer;
let site: ServedSite;
beforeAll(async () => {
  server = await SiteServer.start();
});
beforeEach(() => {
  site = server.open(pages);
});

/** Sends headers that `fetch` does not let a caller set. */
const statusWith = (headers: Record<string, string>): Promise<number | undefined> =>
  new Promise((resolve, reject) => {
    const sent = request(`${site.address}/`, { headers }, response => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.once('error', reject).end();
  });
const statusOf = async (url: string, options?: RequestInit): Promise<number> => (await fetch(url, options)).status;
const form = (body: string): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/x-www-form-urlencoded' },
  body,
});

test('a page is reachable only with the secret of its episode', async () => {
  const secret = site.address.split('/').at(-1)!;
  expect(secret).toMatch(/^[0-9a-f]{48}$/);
  const root = site.address.slice(0, -secret.length);
  const wrong = [
    '',
    '0'.repeat(48),
    secret.slice(1),
    `${secret}0`,
    'é'.repeat(48),
    server.open(pages).address.slice(-48),
  ];
  expect(await Promise.all(wrong.map(each => statusOf(`${root}${each}/`)))).toEqual(wrong.map(() => 404));
  expect(await statusOf(new URL('/', root).href)).toBe(404);
  expect(await statusOf(`${site.address}/`)).toBe(200);
});

test('requests of web pages and for other hosts are refused', async () => {
  expect(await statusWith({ origin: new URL(site.address).origin })).toBe(403);
  expect(await statusWith({ 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await statusWith({ host: 'evil.example' })).toBe(403);
  expect(await statusWith({})).toBe(200);
});

test('a closed site is no longer served', async () => {
  const other = server.open(pages);
  other.close();
  expect(await statusOf(`${other.address}/`)).toBe(404);
  expect(await statusOf(`${site.address}/`)).toBe(200);
});

test('a form is stored, and only a form', async () => {
  const order = `${site.address}/order`;
  expect(await statusOf(`${site.address}/nowhere`)).toBe(404);
  expect(await statusOf(`${site.address}/`, form('code=1'))).toBe(405);
  expect(await statusOf(order, { method: 'PUT', body: 'code=1' })).toBe(405);
  expect(await statusOf(order, { method: 'POST', body: 'code=1' })).toBe(415);
  expect(await statusOf(order, form(`code=${'1'.repeat(maxFormBytes)}`))).toBe(413);
  expect(site.order).toBeUndefined();
  expect(await statusOf(order, form('code=a%20%26+b&x%22y=%C3%A9'))).toBe(200);
  expect(site.order).toEqual({ code: 'a & b', 'x"y': 'é' });
});

test('a text browser reads what the site has written, and stays on the site', async () => {
  const browser = new TextBrowser(site.address);
  expect(await browser.open('/')).toBe(true);
  expect([browser.path, browser.page]).toEqual(['/', pages.get('/')]);
  expect(await browser.open('/order')).toBe(true);
  expect(browser.page).toEqual(pages.get('/order'));
  browser.filled = { code: 'é & 1' };
  for (const path of ['/nowhere', '/../../', '/order/', '//evil.example/', '/\\..\\..', '/%2e%2e/%2e%2e/'])
    expect([path, await browser.open(path)]).toEqual([path, false]);
  expect(browser.text).toBe('Order (/order)\nFill in.\ncode: é & 1\nx"y: (empty)\n[1] Start');
  expect(await browser.submit()).toBe('Your order has been sent.');
  expect(site.order).toEqual({ code: 'é & 1' });
  await browser.open('/order?again#here');
  expect([browser.path, browser.filled]).toEqual(['/order', { code: 'é & 1' }]);
  await browser.open('/');
  expect(browser.filled).toEqual({});
});

test('equal actions show equal pages in episodes at the same time, and an order ends only its own', async () => {
  const open = async (): Promise<Environment> => {
    const inner = smallWeb.create(smallWeb.config.parse({ kinds: ['order'] }));
    return withTools(inner, () => declaredTools(inner.tools));
  };
  const [one, other] = await Promise.all([open(), open()]);
  const first = await Promise.all([one, other].map(async each => each.reset({ seed: 7 })));
  expect(first[0]).toEqual(first[1]);
  const plan = (await one.solve!())!;
  for (const action of plan.slice(0, -1)) {
    const steps = await Promise.all([one, other].map(async each => each.step(action)));
    expect(steps[0].observation).toBe(steps[1].observation);
    expect(steps[0].observation).not.toMatch(/127\.0\.0\.1|[0-9a-f]{24}/);
  }
  expect((await one.step(plan.at(-1)!)).info.success).toBe(true);
  const look = callAction([{ name: 'open', arguments: { path: '/shop' } }]);
  expect((await other.step(look)).terminated).toBe(false);
  const again = await one.reset({ seed: 7 });
  expect(again).toEqual(first[0]);
  expect((await one.step(look)).terminated).toBe(false);
  await Promise.all([one, other].map(async each => each.close!()));
  expect((await one.step(look)).observation).toBe('open: Error: there is no page "/shop"');
});
