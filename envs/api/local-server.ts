// What the HTTP servers of environments share: the model server and the small web. Both serve programs on this machine
// at addresses that contain a secret. Security: they listen on 127.0.0.1 only, refuse requests of web pages (Origin,
// Sec-Fetch-Site, or another Host after DNS rebinding), compare secrets in constant time, and bound bodies.
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Listens on 127.0.0.1 and returns the port. The process may end while the server waits.
 * @param port 0 for any free port
 */
export async function listenLocally(http: Server, port = 0): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    http.once('error', reject);
    http.listen(port, '127.0.0.1', resolve);
  });
  http.unref();
  return (http.address() as AddressInfo).port;
}

/**
 * Returns why a request may come from a web page; undefined if it comes from a program.
 * @param host another host name by which programs may reach 127.0.0.1 of this machine
 */
export function webPageRefusal({ headers }: IncomingMessage, host?: string): string | undefined {
  const site = headers['sec-fetch-site'];
  if (headers.origin !== undefined || site === 'cross-site' || site === 'same-site')
    return 'requests of web pages are refused: call from a program';
  const asked = (headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  if (!['127.0.0.1', 'localhost', host?.toLowerCase()].includes(asked))
    return `the Host header is ${JSON.stringify((headers.host ?? '').slice(0, 80))}: call 127.0.0.1`;
  return undefined;
}

/** Whether a request's secret is the right one, compared in constant time. */
export function isSameSecret(secret: string, given: string): boolean {
  const [right, other] = [Buffer.from(secret), Buffer.from(given)];
  return right.length === other.length && timingSafeEqual(right, other);
}

/**
 * Reads a request's body as UTF-8. Returns undefined if it is larger than `maxBytes`; the connection stays open, so
 * that the refusal can be sent.
 */
export async function requestText(request: IncomingMessage, maxBytes: number): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    if ((size += chunk.length) > maxBytes) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
