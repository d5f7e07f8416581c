// The HTTP server of the small web: one per thread, on 127.0.0.1. Each episode has an address of its own, which contains
// a secret: `http://127.0.0.1:<port>/<number>/<secret>`. It is served while the episode is open, and only to programs
// (api/local-server.ts). Pages are HTML; the order form is posted as `application/x-www-form-urlencoded`.
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { isSameSecret, listenLocally, requestText, webPageRefusal } from '../api/local-server';
import type { Page } from './site';

/** Maximum bytes of a posted form. */
export const maxFormBytes = 16 * 1024;

/** A site that is served. */
export interface ServedSite {
  /** The site's address without a slash at the end; paths of pages follow it. */
  readonly address: string;
  /** Fields of the form that was posted last; undefined until a form is posted. */
  order?: Readonly<Record<string, string>>;
  /** Ends the site: later requests are answered with status 404. */
  close(): void;
}

/** A response without its headers. */
interface Answer {
  status: number;
  page: Page;
}

export class SiteServer {
  private readonly sites = new Map<string, { site: ServedSite; secret: string; pages: ReadonlyMap<string, Page> }>();
  private count = 0;
  private port = 0;

  /** Starts a server at any free port. */
  static async start(): Promise<SiteServer> {
    const server = new SiteServer();
    const http = createServer((request, response) => void server.respond(request, response));
    http.on('connection', socket => socket.unref()); // an idle connection does not keep the process alive
    server.port = await listenLocally(http);
    return server;
  }

  /** Serves pages, given by their paths, until the site is closed. */
  open(pages: ReadonlyMap<string, Page>): ServedSite {
    const id = String(++this.count);
    const secret = randomBytes(24).toString('hex');
    const address = `http://127.0.0.1:${this.port}/${id}/${secret}`;
    const site: ServedSite = { address, close: () => void this.sites.delete(id) };
    this.sites.set(id, { site, secret, pages });
    return site;
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, id = '', secret = ''] = (request.url ?? '').split('/', 3);
    const answer = await this.answerTo(request, id, secret).catch((error: Error): Answer =>
      failed(500, `The server failed: ${error.message}.`),
    );
    request.resume(); // discards the rest of a refused body
    response.writeHead(answer.status, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'",
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer', // addresses contain secrets
      ...(!request.complete && { connection: 'close' }),
    });
    response.end(htmlOf(answer.page, path => `/${id}/${secret}${path}`));
  }

  private async answerTo(request: IncomingMessage, id: string, secret: string): Promise<Answer> {
    const refusal = webPageRefusal(request);
    if (refusal !== undefined) return failed(403, refusal);
    const served = this.sites.get(id);
    if (!served || !isSameSecret(served.secret, secret)) return failed(404, 'There is no site at this address.');
    const path = request.url!.slice(`/${id}/${secret}`.length).replace(/\?.*$/s, '');
    const page = served.pages.get(path);
    if (!page) return failed(404, 'There is no such page.');
    if (request.method === 'GET') return { status: 200, page };
    if (request.method !== 'POST' || !page.fields) return failed(405, 'This page takes GET only.');
    if (request.headers['content-type'] !== 'application/x-www-form-urlencoded')
      return failed(415, 'The form is sent as application/x-www-form-urlencoded.');
    const body = await requestText(request, maxFormBytes);
    if (body === undefined) return failed(413, `The form has more than ${maxFormBytes} bytes.`);
    served.site.order = Object.fromEntries(new URLSearchParams(body));
    return { status: 200, page: { title: page.title, text: 'Your order has been sent.', links: [] } };
  }
}

let shared: Promise<SiteServer> | undefined;

/** Returns the server of this thread, which the first call starts. */
export const siteServer = (): Promise<SiteServer> => (shared ??= SiteServer.start());

const failed = (status: number, text: string): Answer => ({
  status,
  page: { title: `Error ${status}`, text, links: [] },
});

const escaped = (text: string): string => text.replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);

/** @param at returns the address of a path of the site */
function htmlOf({ title, text, links, fields }: Page, at: (path: string) => string): string {
  const inputs = (fields ?? []).map(name => `<label>${escaped(name)} <input name="${escaped(name)}"></label>`);
  return [
    `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>${escaped(title)}</title>`,
    `<h1>${escaped(title)}</h1>\n<p>${escaped(text)}</p>`,
    ...(fields ? [`<form method="post">\n${inputs.join('\n')}\n<button>Submit</button>\n</form>`] : []),
    ...links.map(link => `<a href="${escaped(at(link.path))}">${escaped(link.text)}</a>`),
    '</html>\n',
  ].join('\n');
}
