// File systems that fail on demand: the nth call throws, before or after doing its work, as on a full disk or in a
// process that dies.
import { fileSystem, syncFileSystem } from '../../extension/node/files';
import type { FileSystem, SyncFileSystem } from '../../extension/node/files';

export const diskFull = (): NodeJS.ErrnoException =>
  Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });

export interface Failure {
  /** Number of calls so far. */
  calls: number;
  /** Number of the call that fails, from 1; Infinity for none. */
  at: number;
  /** Behaviour of later calls: keep failing, as in a dead process, or work again. */
  after: 'dead' | 'works';
}

const fails = (failure: Failure): boolean => {
  failure.calls += 1;
  return failure.calls === failure.at || (failure.after === 'dead' && failure.calls > failure.at);
};

/**
 * Wraps every method, including the methods of file handles that `open` returns. In a dead process, `close` still
 * works.
 */
function wrap<T extends object>(target: T, failure: Failure): T {
  return new Proxy(target, {
    get(object, name) {
      const member: unknown = Reflect.get(object, name, object);
      if (typeof member !== 'function') return member;
      if (name === 'close' || name === 'closeSync') return member.bind(object) as unknown;
      return (...args: unknown[]) => {
        const isAsync = !String(name).endsWith('Sync');
        if (fails(failure)) {
          if (isAsync) return Promise.reject(diskFull());
          throw diskFull();
        }
        const result: unknown = Reflect.apply(member, object, args);
        if (name !== 'open') return result;
        return (result as Promise<object>).then(handle => wrap(handle, failure));
      };
    },
  });
}

export const failingFiles = (failure: Failure): FileSystem => wrap({ ...fileSystem }, failure);
export const failingSyncFiles = (failure: Failure): SyncFileSystem => wrap({ ...syncFileSystem }, failure);
