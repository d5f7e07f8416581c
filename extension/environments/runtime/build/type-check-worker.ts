// Worker thread for type checks, which would otherwise block episodes. TypeScript is part of this bundle and is
// initialized by the first check; its library types are read from the installation.
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parentPort } from 'node:worker_threads';
import { serveCalls } from '../../../node/thread-calls';
import { TypeCheckService, type TypeCheck } from './type-check';

/** Result of a check, or the reason why the check did not run. */
export type TypeCheckReply = TypeCheck | { unchecked: string };

/** Functions that this worker serves. */
export interface TypeChecks {
  /** Type-checks the environment with the entry file `source`. */
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
