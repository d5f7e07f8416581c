// `lease` of a run folder: names the process that serves the run, and the endpoint of this process. A lease is valid
// only in the folder for which it was written, and only while the trainer touches it (node/lease-liveness.ts).
import { z } from 'zod';

/**
 * Schema of the file `lease`, which names the process that serves this run. While the trainer lives, it touches the
 * file (updates the file's modification time) every second. Leases of earlier versions lack the optional fields that
 * identify the process.
 */
export const leaseSchema = z.object({
  pid: z
    .int()
    .min(1)
    .max(2 ** 31 - 1),
  started: z.string(),
  endpoint: z.string().describe('path of the socket or name of the pipe'),
  token: z.string(),
  process_start: z.string().max(64).optional().describe('start time of the process (process-identity.ts)'),
  host: z.string().max(256).optional(),
  boot: z.string().max(64).nullable().optional().describe('boot id of the machine; Linux only'),
  pid_namespace: z.string().max(64).nullable().optional().describe('inode of the PID namespace; Linux only'),
  folder: z
    .object({ path: z.string().describe('path without symbolic links'), inode: z.string() })
    .optional()
    .describe('the run folder for which the lease was written; absent in leases of earlier versions'),
});
export type Lease = z.infer<typeof leaseSchema>;

/**
 * Whether a lease was written for the folder that contains it. False in a copied or renamed folder, because the lease
 * in such a folder names the trainer of the original folder. A folder that is mounted under another path, as in a
 * container, is recognized by its inode.
 */
export function isLeaseOf({ folder }: Lease, at: NonNullable<Lease['folder']>): boolean {
  if (folder === undefined || folder.path === at.path) return true;
  const name = (path: string): string | undefined => path.split(/[\\/]/).at(-1);
  return folder.inode === at.inode && name(folder.path) === name(at.path);
}

/**
 * Milliseconds since the last touch after which a trainer does not respond. A trainer on another machine or in another
 * container is then no longer known to live, so a new trainer may take over the lease.
 */
export const leaseStaleMs = 5000;

/**
 * Milliseconds since the last touch after which a trainer whose process cannot be checked, for example on another
 * machine, is shown as dead. Larger than `leaseStaleMs`, because a loaded machine or a slow network drive delays
 * touches.
 */
export const leaseOldMs = 30_000;
