// A play session that another program controls: reads requests as JSON lines from standard input, and writes one reply
// per line to standard output, in order. An additional first line contains the start of the episode, or the error if
// the environment does not load. The session ends when standard input ends. The format is JSON lines instead of
// JSON-RPC, because programs in any language can easily write and read JSON lines.
import { z } from 'zod';
import type { PlayReply, PlayRequest } from '../../protocol/environment-tools';
import { jsonOrNothing } from '../../common/json';
import { linesOf } from '../../common/stream-lines';
import type { Session } from './play-session';

const requestSchema = z.intersection(
  z.object({ id: z.int() }),
  z.discriminatedUnion('do', [
    z.object({ do: z.literal('act'), action: z.union([z.number(), z.string()]) }),
    z.object({ do: z.literal('undo') }),
    z.object({ do: z.literal('restart'), seed: z.int().min(0).optional() }),
    z.object({ do: z.literal('hint') }),
    z.object({ do: z.literal('solve') }),
    z.object({ do: z.literal('reload') }),
  ]),
);

export async function serveSession(session: Session): Promise<void> {
  const send = (reply: PlayReply) => process.stdout.write(`${JSON.stringify(reply)}\n`);
  send(await session.answer(0, { do: 'reload' }));
  for await (const line of linesOf(process.stdin.setEncoding('utf8'))) {
    if (line.trim() === '') continue;
    const request = playRequest(line);
    if (!request) {
      const message = `standard input: ${line.slice(0, 80)} is not a request: write {"id": 1, "do": "act", "action": …} or undo, restart, hint, solve, reload`;
      send({ id: 0, error: { message } });
    } else send(await session.answer(request.id, request));
  }
}

/** Parses a line as a request; undefined if the line is not a valid request. */
export const playRequest = (line: string): PlayRequest | undefined => requestSchema.safeParse(jsonOrNothing(line)).data;
