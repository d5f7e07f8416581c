// What the server of model calls needs from a protocol: a request's call, and the response to its reply. A protocol is a
// pure function of the request's body. Errors are sent in the form of the protocol.
import type { CallMessage, CallTool, ModelCall, ModelReply } from '../model-calls';

/** A response: one JSON document, or a stream of server-sent events. */
export type WireResponse = { json: unknown } | { events: WireEvent[] };

export interface WireEvent {
  /** Name of the event; omitted by chat completions. */
  event?: string;
  data: string;
}

export interface WireRequest {
  call: ModelCall;
  /** Returns the response to the call's reply. `id` is unique among the calls of the server. */
  respond(reply: ModelReply, id: string): WireResponse;
}

export interface Protocol {
  /** Last part of the route, such as `/v1/chat/completions`. */
  route: string;
  /** @throws RequestError if the request is refused */
  parse(body: unknown): WireRequest;
  /** Returns the body of an error. */
  error(status: number, message: string, parameter?: string): unknown;
}

/** A refused request; the message is one sentence with the place, the value and the remedy. */
export class RequestError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly parameter?: string,
  ) {
    super(message);
  }
}

export type Plain = Record<string, unknown>;
export const isPlain = (value: unknown): value is Plain =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const refuse = (parameter: string, problem: string, remedy: string): RequestError =>
  new RequestError(400, `${parameter} ${problem}: ${remedy}`, parameter);

/** Returns the body of a request as an object. @throws RequestError if it is something else */
export function bodyOf(body: unknown): Plain {
  if (isPlain(body)) return body;
  throw new RequestError(400, 'the body is not a JSON object: send the parameters as one object');
}

/**
 * Refuses parameters that would change the reply in a way that the gateway does not offer.
 * @param known names that are used or ignored
 * @param neutral for further names, whether a value asks for nothing special
 */
export function requireKnown(
  body: Plain,
  known: ReadonlySet<string>,
  neutral: Readonly<Record<string, (value: unknown) => boolean>>,
): void {
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined || value === null || known.has(name)) continue;
    const isNeutral = Object.hasOwn(neutral, name) ? neutral[name] : undefined;
    if (!isNeutral) throw refuse(name, 'is no parameter of the gateway', 'leave it out (docs/GATEWAY.md lists all)');
    if (!isNeutral(value))
      throw refuse(name, `is ${shown(value)}, which the gateway does not offer`, 'leave it out (docs/GATEWAY.md)');
  }
}

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

/** Returns an optional limit of tokens. */
export function limitOf(body: Plain, ...names: string[]): { max_tokens?: number } {
  for (const name of names) {
    const value = body[name] ?? undefined;
    if (value === undefined) continue;
    if (!Number.isSafeInteger(value) || Number(value) < 1)
      throw refuse(name, `is ${shown(value)}`, 'set it to an integer of at least 1');
    return { max_tokens: Number(value) };
  }
  return {};
}

/** Returns stop texts: none, one text or a list. */
export function stopOf(value: unknown, parameter: string): string[] {
  const list: unknown[] = value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
  if (list.length <= 16 && list.every((text): text is string => typeof text === 'string' && text !== '')) return list;
  throw refuse(parameter, `is ${shown(value)}`, 'set it to a text or to at most 16 texts that are not empty');
}

/** Returns a content as text: a text, nothing, or a list of parts whose types are in `types`. */
export function textOf(content: unknown, parameter: string, types: readonly string[]): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw refuse(parameter, `is ${shown(content)}`, 'set it to a text or a list of texts');
  return content
    .map((part: unknown, index) => {
      if (isPlain(part) && typeof part.text === 'string' && types.includes(String(part.type))) return part.text;
      const type = isPlain(part) ? String(part.type) : shown(part);
      throw refuse(`${parameter}[${index}]`, `has the type ${type}`, 'send text, because the policy reads text only');
    })
    .join('\n');
}

/** Returns a tool from its name, description and schema. */
export function toolOf(name: unknown, description: unknown, parameters: unknown, parameter: string): CallTool {
  if (typeof name !== 'string' || name === '') throw refuse(`${parameter}.name`, `is ${shown(name)}`, 'name the tool');
  return {
    name,
    description: typeof description === 'string' ? description : '',
    parameters: isPlain(parameters) ? parameters : { type: 'object', properties: {} },
  };
}

/** Returns the messages, of which there must be at least one. */
export function someMessages(messages: CallMessage[], parameter: string): CallMessage[] {
  if (messages.length > 0) return messages;
  throw refuse(parameter, 'is empty', 'send at least one message');
}

/** Returns a list of objects. */
export function listOf(value: unknown, parameter: string): Plain[] {
  if (Array.isArray(value) && value.every(isPlain)) return value;
  throw refuse(parameter, `is ${shown(value)}`, 'set it to a list of objects');
}
