// Worker thread for type checks, so that neither environments nor the trainer wait for them. TypeScript is in this
// bundle and is initialized on the first check; its library types come from the installation.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { TypeCheckService, type TypeCheck } from './type-check';

/** Requests a type check of the environment with the entry file `source`. */
export interface TypeCheckRequest {
  id: number;
  source: string;
}
export type TypeCheckReply = { id: number } & (TypeCheck | { unchecked: string });

const installation = dirname(dirname(fileURLToPath(import.meta.url)));
let service: Promise<TypeCheckService> | undefined;

/** Returns the findings; why there are none if the compiler fails. */
async function check({ id, source }: TypeCheckRequest): Promise<TypeCheckReply> {
  try {
    service ??= import('typescript').then(({ default: ts }) => new TypeCheckService(ts, installation));
    return { id, ...(await service).check(source) };
  } catch (error) {
    return { id, unchecked: (error as Error).message.split('\n', 1)[0] };
  }
}

parentPort!.on('message', (request: TypeCheckRequest) => {
  void check(request).then(reply => parentPort!.postMessage(reply)); // never rejects
});
