// Serves the inspector to the editor: JSON-RPC over standard input and output (protocol/inspection.ts). A failure is
// returned as an error with one sentence. A cancelled request is answered immediately, even if its work cannot be
// interrupted. When standard input ends, the service closes all runs and models and returns.
import { ResponseError, type RequestType } from 'vscode-jsonrpc/node';
import {
  cancelledCode,
  checkpoints,
  failedCode,
  heatMaps,
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
import { onRequest, stdioMessages } from '../../node/stdio-messages';
import { UserError } from '../../common/user-error';
import { Inspector } from './inspector';

/** Serves requests until standard input ends. */
export async function serveInspector(threads: number): Promise<void> {
  const connection = stdioMessages(process.stdin, process.stdout, clearedWriter);
  const deaf = (): undefined => undefined; // ignores write errors after the editor has exited
  const inspector = new Inspector(threads, {
    phase: words => void connection.sendNotification(inspectionPhase, { words }).catch(deaf),
    whatIfTokens: (session, turn, tokens) =>
      void connection.sendNotification(whatIfTokens, { session, turn, tokens }).catch(deaf),
  });
  const on = <P, R>(type: RequestType<P, R, void>, work: (asked: P, signal: AbortSignal) => Promise<R>): void =>
    onRequest(connection, type, work, errorOf);
  on(checkpoints, ({ folder }) => inspector.checkpoints(folder));
  on(pieces, ({ folder, ids }) => inspector.pieces(folder, ids));
  on(rescore, (asked, signal) => inspector.rescore(asked, signal));
  on(heatMaps, (asked, signal) => inspector.heatMaps(asked, signal));
  on(legalActions, asked => inspector.legalActions(asked));
  on(whatIf, (asked, signal) => inspector.whatIf(asked, signal));
  on(whatIfTurn, (asked, signal) => inspector.whatIfTurn(asked, signal));
  on(whatIfEnd, ({ session, keep }) => inspector.whatIfEnd(session, keep));
  const closed = new Promise<void>(resolve => connection.onClose(resolve));
  connection.listen();
  await closed;
  await inspector.close();
}

function errorOf(error: unknown, { aborted }: AbortSignal): ResponseError<void> {
  if (aborted) return new ResponseError(cancelledCode, 'cancelled');
  const { message, stack } = error as Error;
  if (!(error instanceof UserError)) process.stderr.write(`${stack}\n`);
  return new ResponseError(failedCode, message);
}
