// Client of a trainer on another machine: sends requests as files of the run folder (run-data/run-request.ts), and
// polls for the replies. Used where the trainer's socket cannot be reached. Must not import `vscode`.
import { createHmac, randomBytes } from 'node:crypto';
import { lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { RequestType } from 'vscode-jsonrpc';
import { jsonOrNothing } from '../common/json';
import { UserError } from '../common/user-error';
import type { Lease } from '../run-data/lease-file';
import { runFiles } from '../run-data/run-file-names';
import { replyFile, replySchema, requestFile } from '../run-data/run-request';
import { makeFolder, fileSystem, replaceFile } from './files';
import { pidScopeOf } from './lease-liveness';
import { currentPidScope, isSamePidScope } from './process-identity';
import { readRunFile } from './read-run-file';

/** Milliseconds between checks for the reply. */
const pollMs = 200;

/** Returns the HMAC of a request; the key is the lease's token. */
export const requestHmac = (token: string, id: string, body: string): string =>
  createHmac('sha256', token).update(`${id}\n${body}`).digest('hex');

/** Whether a lease names a process of another machine or container, whose socket may be unreachable. */
export function isElsewhere(lease: Lease, here = currentPidScope): boolean {
  const scope = pidScopeOf(lease);
  return scope !== undefined && !isSamePidScope(scope, here);
}

/**
 * Sends a request to the trainer that holds `lease`, and resolves to its reply.
 * @throws UserError if the trainer refuses the request (the message gives the trainer's reason), or if no reply arrives
 * within `limitMs`
 */
export async function askByFile<P, R>(
  folder: string,
  lease: Lease,
  { method }: RequestType<P, R, void>,
  params: P,
  limitMs: number,
): Promise<R> {
  const requests = join(folder, runFiles.requests);
  const id = randomBytes(8).toString('hex');
  const body = JSON.stringify({ method, params });
  const request = { schema: 1, body, hmac: requestHmac(lease.token, id, body) };
  await makeFolder(requests, fileSystem, folder);
  if (!(await lstat(requests)).isDirectory())
    throw new UserError(
      `${requests} is not a folder, so the trainer on ${lease.host} cannot be reached: remove the file at this path`,
    );
  try {
    await replaceFile(join(requests, requestFile(id)), `${JSON.stringify(request)}\n`);
    for (const deadline = performance.now() + limitMs; performance.now() < deadline; await sleep(pollMs)) {
      await readdir(requests); // makes network file systems look for new files
      const reply = await replyOf(folder, id);
      if (reply === undefined) continue;
      if ('error' in reply) throw new UserError(reply.error);
      return reply.result as R;
    }
    throw new UserError(
      `${folder}: the trainer on ${lease.host} did not reply within ${limitMs / 1000} s: check that ${lease.host} shares this folder, and see the trainer's ${runFiles.log}`,
    );
  } finally {
    for (const name of [requestFile(id), replyFile(id)]) await rm(join(requests, name), { force: true });
  }
}

async function replyOf(folder: string, id: string) {
  try {
    const text = (await readRunFile(folder, join(runFiles.requests, replyFile(id)))).toString('utf8');
    return replySchema.safeParse(jsonOrNothing(text)).data;
  } catch {
    return undefined; // there is no reply yet
  }
}
