// Requests to a trainer through files of its run folder, for clients on other machines, which cannot reach the
// trainer's socket. A client writes `requests/<id>.json`; the trainer removes the file and writes
// `requests/<id>.reply.json`. An HMAC with the lease's token shows that the client may read the lease; the token itself
// is never written.
import { z } from 'zod';

export const requestSchema = z.object({
  schema: z.literal(1),
  body: z.string().max(65_536).describe('JSON text of {method, params}'),
  hmac: z.string().regex(/^[0-9a-f]{64}$/),
});

/** Content of a request: a method of protocol/trainer-link.ts and its parameters. */
export const requestBodySchema = z.object({ method: z.string(), params: z.unknown() });

export const replySchema = z.union([
  z.object({ schema: z.literal(1), result: z.unknown() }).refine(reply => 'result' in reply),
  z.object({ schema: z.literal(1), error: z.string() }),
]);

/** `requests/<id>.json`: a request. */
export const requestFile = (id: string): string => `${id}.json`;
/** `requests/<id>.reply.json`: the reply to a request. */
export const replyFile = (id: string): string => `${id}.reply.json`;

/** Returns the id of the request in a file of this name; undefined for other files. */
export const requestIdOf = (name: string): string | undefined => /^([0-9a-f]{16})\.json$/.exec(name)?.[1];
