// How much memory a program in isolation holds, as seen from outside: that of all its processes, found over the children of all threads, and
// that of the files in its private folders. Pages that processes share are counted once where the quick sum says that it is too much.
// The kernel's own structures for a process are not seen here: only a control group counts them.
import { readdirSync, readFileSync, statfsSync } from 'node:fs';

/** What a file in memory costs beside its pages: its inode and its name. */
const fileBytes = 1536;
const kibibyte = 1024;

/**
 * Bytes that a process and all that it has started hold.
 * @param limit above which the exact number is worth its time
 */
export function memoryOf(pid: number, limit: number): number {
  const pids = processesBelow(pid);
  const quick = sum(pids.map(quickMemory));
  return quick <= limit ? quick : sum(pids.map(exactMemory));
}

/** Bytes that files cost beside their pages in a program's private folders; `pid` is one of its processes. */
export function memoryOfFiles(pid: number, folders: readonly string[]): number {
  return sum(
    folders.map(folder => {
      try {
        const { files, ffree } = statfsSync(`/proc/${pid}/root${folder}`);
        return (files - ffree) * fileBytes;
      } catch {
        return 0; // it has ended
      }
    }),
  );
}

/** A process and all below it. What loses its parent stays below the first process of its namespace. */
export function processesBelow(pid: number): number[] {
  const found = [pid];
  for (const parent of found) {
    try {
      for (const thread of readdirSync(`/proc/${parent}/task`)) {
        const children = readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').trim();
        if (children !== '') for (const child of children.split(' ')) found.push(Number(child));
      }
    } catch {
      // it has ended, or its thread has: what it started has another parent when this is next looked at
    }
  }
  return found;
}

/** Pages that no file on a disk backs, present or swapped out, and the tables that map them; shared ones count for each process. */
function quickMemory(pid: number): number {
  return kibibytesOf(`/proc/${pid}/status`, /^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$/gm) * kibibyte;
}

/** The same with each shared page counted in equal parts for those who share it. */
function exactMemory(pid: number): number {
  const shared = kibibytesOf(`/proc/${pid}/smaps_rollup`, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm);
  if (shared === 0) return quickMemory(pid);
  return (shared + kibibytesOf(`/proc/${pid}/status`, /^VmPTE:\s+(\d+) kB$/gm)) * kibibyte;
}

function kibibytesOf(file: string, lines: RegExp): number {
  try {
    return sum([...readFileSync(file, 'utf8').matchAll(lines)].map(([, kB]) => Number(kB)));
  } catch {
    return 0; // it has ended
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
