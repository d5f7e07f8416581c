// The worker thread that checks types, so that neither environments nor the trainer wait for it. TypeScript lies in this bundle and is
// made ready with the first check; its library's types come from the installation.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { TypeCheckService, type TypeCheck } from './type-check';

/** Asks for the types of the environment whose entry is `source`. */
export interface TypeCheckRequest {
  id: number;
  source: string;
}
export type TypeCheckReply = { id: number } & (TypeCheck | { unchecked: string });

const installation = dirname(dirname(fileURLToPath(import.meta.url)));
let service: Promise<TypeCheckService> | undefined;

parentPort!.on('message', async ({ id, source }: TypeCheckRequest) => {
  let reply: TypeCheckReply;
  try {
    service ??= import('typescript').then(({ default: ts }) => new TypeCheckService(ts, installation));
    reply = { id, ...(await service).check(source) };
  } catch (error) {
    reply = { id, unchecked: (error as Error).message.split('\n', 1)[0] };
  }
  parentPort!.postMessage(reply);
});
