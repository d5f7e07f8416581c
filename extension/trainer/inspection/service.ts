// The inspector as a service for the editor: JSON-RPC over standard input and output (protocol/inspection.ts). Every
// failure is an error with one sentence; a cancelled request is answered at once, even while its work continues. Ends
// with its standard input and closes everything it opened.
import { createMessageConnection, ResponseError, StreamMessageReader, StreamMessageWriter } from 'vscode-jsonrpc/node';
import type { CancellationToken, RequestType } from 'vscode-jsonrpc/node';
import {
  cancelledCode,
  checkpoints,
  failedCode,
  inspectionPhase,
  legalActions,
  pieces,
  rescore,
  whatIf,
  whatIfEnd,
  whatIfTokens,
  whatIfTurn,
} from '../../protocol/inspection';
import { clearedWriter } from '../../node/cleared-writer';
import { withoutTimer } from '../../node/socket-messages';
import { UserError } from '../../common/user-error';
import { Inspector } from './inspector';

/** Serves until standard input ends. */
export async function serveInspector(threads: number): Promise<void> {
  const reader = withoutTimer(new StreamMessageReader(process.stdin));
  const connection = createMessageConnection(reader, clearedWriter(new StreamMessageWriter(process.stdout)));
  const deaf = (): undefined => undefined; // the host may be gone
  const inspector = new Inspector(threads, {
    phase: words => void connection.sendNotification(inspectionPhase, { words }).catch(deaf),
    whatIfTokens: (session, turn, tokens) =>
      void connection.sendNotification(whatIfTokens, { session, turn, tokens }).catch(deaf),
  });
  const on = <P, R>(type: RequestType<P, R, void>, work: (asked: P, signal: AbortSignal) => Promise<R>): void => {
    connection.onRequest(type.method, async (asked: P, token: CancellationToken) => {
      const { signal, cancelled } = signalOf(token);
      try {
        return await Promise.race([work(asked, signal), cancelled]);
      } catch (error) {
        throw answerOf(error, signal);
      }
    });
  };
  on(checkpoints, ({ folder }) => inspector.checkpoints(folder));
  on(pieces, ({ folder, ids }) => inspector.pieces(folder, ids));
  on(rescore, (asked, signal) => inspector.rescore(asked, signal));
  on(legalActions, asked => inspector.legalActions(asked));
  on(whatIf, (asked, signal) => inspector.whatIf(asked, signal));
  on(whatIfTurn, (asked, signal) => inspector.whatIfTurn(asked, signal));
  on(whatIfEnd, ({ session, keep }) => inspector.whatIfEnd(session, keep));
  const closed = new Promise<void>(resolve => reader.onClose(resolve));
  connection.listen();
  await closed;
  await inspector.close();
}

function signalOf(token: CancellationToken): { signal: AbortSignal; cancelled: Promise<never> } {
  const controller = new AbortController();
  const cancelled = new Promise<never>((_, reject) => {
    token.onCancellationRequested(() => {
      controller.abort();
      reject(new Error('cancelled'));
    });
  });
  cancelled.catch(() => undefined); // if the work finishes first
  return { signal: controller.signal, cancelled };
}

function answerOf(error: unknown, { aborted }: AbortSignal): ResponseError<void> {
  if (aborted) return new ResponseError(cancelledCode, 'cancelled');
  const { message, stack } = error as Error;
  if (!(error instanceof UserError)) process.stderr.write(`${stack}\n`);
  return new ResponseError(failedCode, message);
}
