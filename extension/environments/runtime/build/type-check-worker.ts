// Worker thread for type checks, so that neither environments nor the trainer wait for them. TypeScript is in this
// bundle and is initialized on the first check; its library types come from the installation.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { serveCalls } from '../../../node/thread-calls';
import { TypeCheckService, type TypeCheck } from './type-check';

/** Result of a check, or why there is none. */
export type TypeCheckReply = TypeCheck | { unchecked: string };

/** Functions of this worker. */
export interface TypeChecks {
  /** Checks the environment with the entry file `source`. */
  check(source: string): Promise<TypeCheckReply>;
}

const installation = dirname(dirname(fileURLToPath(import.meta.url)));
let service: Promise<TypeCheckService> | undefined;
const checks: TypeChecks = {
  async check(source) {
    try {
      service ??= import('typescript').then(({ default: ts }) => new TypeCheckService(ts, installation));
      return (await service).check(source);
    } catch (error) {
      return { unchecked: (error as Error).message.split('\n', 1)[0] };
    }
  },
};
serveCalls(parentPort!, checks);
