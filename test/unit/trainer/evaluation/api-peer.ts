// A server on 127.0.0.1 that implements the API protocols of hosted models with their strictness: it checks keys,
// headers and message order, counts concurrent requests, and fails on demand.
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

export interface PeerMessage {
  role: string;
  /** Parts if the message has pictures. */
  content: string;
}

/** A fault with which the server responds to a request instead of an answer. */
export type Mishap =
  | { status: number; headers?: Record<string, string>; error?: Record<string, unknown> | string; body?: string }
  | { drop: true }
  | { hang: true }
  | { text: string };

/** Finish reason, by OpenAI's names. */
export type Finish = 'stop' | 'length' | 'content_filter';

export interface ApiPeer {
  /** `http://127.0.0.1:<port>`. */
  url: string;
  key: string;
  /** Bodies of all requests, in order, with their arrival times. */
  requests: { path: string; body: Record<string, unknown>; at: number }[];
  /** Answered conversations, without system messages. */
  answered: PeerMessage[][];
  /** Maximum number of concurrent requests. */
  mostOpen: number;
  /** Produces the answer; tests may replace it. */
  answer: (messages: readonly PeerMessage[]) => { text: string; finish?: Finish };
  /** Faults for the next requests, in order; null means none. */
  mishaps: (Mishap | null)[];
  /** Delay of each answer in milliseconds. */
  delayMs: number;
  /** Waits until no client is connected. All requests of a killed client are recorded when this resolves. */
  forsaken(): Promise<void>;
  close(): Promise<void>;
}

const read = async (request: IncomingMessage): Promise<string> => {
  let text = '';
  for await (const part of request.setEncoding('utf8')) text += part as string;
  return text;
};

export async function startPeer(key = 'sk-secret-4f9a7c1e8b2d'): Promise<ApiPeer> {
  let open = 0;
  const hanging = new Set<ServerResponse>();
  const server = createServer((request, response) => {
    open++;
    peer.mostOpen = Math.max(peer.mostOpen, open);
    response.once('close', () => open--);
    void serve(request, response);
  });
  const reply = (
    response: ServerResponse,
    status: number,
    body: unknown,
    headers: Record<string, string> = {},
  ): void => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = JSON.parse(await read(request)) as Record<string, unknown>;
    const path = request.url ?? '';
    peer.requests.push({ path, body, at: performance.now() });
    const mishap = peer.mishaps.shift();
    // eslint-disable-next-line no-restricted-syntax -- stands in for a slow service
    await sleep(peer.delayMs);
    if (mishap) {
      if ('drop' in mishap) return void request.socket.destroy();
      if ('hang' in mishap) return void hanging.add(response);
      if ('text' in mishap) return reply(response, 200, mishap.text);
      return reply(
        response,
        mishap.status,
        mishap.body ?? { error: mishap.error ?? { message: 'told to fail' } },
        mishap.headers,
      );
    }
    const anthropic = path === '/v1/messages';
    if (!anthropic && path !== '/v1/chat/completions')
      return reply(response, 404, { error: { message: 'no such path' } });
    const given = anthropic ? request.headers['x-api-key'] : request.headers.authorization?.replace(/^Bearer /, '');
    // A careless service, which repeats the key in its error.
    if (given !== peer.key) return reply(response, 401, { error: { message: `Incorrect API key provided: ${given}` } });
    const complaint = complaintOf(body, anthropic, request);
    if (complaint) return reply(response, 400, { error: { type: 'invalid_request_error', message: complaint } });
    const messages = (body.messages as PeerMessage[]).filter(({ role }) => role !== 'system');
    peer.answered.push(messages);
    const { text, finish = 'stop' } = peer.answer(messages);
    const [prompt, answer] = [JSON.stringify(messages).length, text.length];
    if (anthropic)
      return reply(response, 200, {
        type: 'message',
        role: 'assistant',
        content: text === '' ? [] : [{ type: 'text', text }],
        stop_reason: { stop: 'end_turn', length: 'max_tokens', content_filter: 'refusal' }[finish],
        usage: { input_tokens: prompt - 1, cache_read_input_tokens: 1, output_tokens: answer },
      });
    reply(response, 200, {
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, finish_reason: finish }],
      usage: { prompt_tokens: prompt, completion_tokens: answer, total_tokens: prompt + answer },
    });
  }

  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening));
  const peer: ApiPeer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    key,
    requests: [],
    answered: [],
    mostOpen: 0,
    answer: () => ({ text: 'hello' }),
    mishaps: [],
    delayMs: 0,
    async forsaken() {
      const connected = () => new Promise<number>(resolve => server.getConnections((_, count) => resolve(count)));
      for (; (await connected()) > 0; await sleep(5));
    },
    close: () =>
      new Promise(closed => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
  return peer;
}

/** The error for a request that the real services would refuse; null for a valid request. */
function complaintOf(body: Record<string, unknown>, anthropic: boolean, request: IncomingMessage): string | null {
  const messages = body.messages as PeerMessage[] | undefined;
  if (typeof body.model !== 'string') return 'model: required';
  if (!Array.isArray(messages) || messages.length === 0) return 'messages: required';
  const turns = messages.filter(({ role }) => role !== 'system');
  if (!turns.every(({ role, content }, i) => role === (i % 2 === 0 ? 'user' : 'assistant') && content !== ''))
    return 'messages: roles must alternate, beginning with user, and content must not be empty';
  if (turns.at(-1)!.role !== 'user') return 'messages: the last one must be of the user';
  if (!anthropic) return null;
  if (turns.length !== messages.length) return 'messages: Unexpected role "system"';
  if (typeof body.max_tokens !== 'number') return 'max_tokens: Field required';
  if (request.headers['anthropic-version'] !== '2023-06-01') return 'anthropic-version: header is required';
  return null;
}
