// Measures the memory of an isolated program from outside: all of its processes, found through the children of all
// threads, and the files in its private folders. If the quick sum exceeds the limit, shared pages are counted once. The
// kernel's own structures for a process are not included; only a cgroup counts them.
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';

/** Memory of a file in addition to its pages: its inode and its name. */
const fileBytes = 1536;
const kibibyte = 1024;

/**
 * Bytes held by a process and all its descendants.
 * @param limit the exact, slower measurement is made only above it
 */
export function memoryOf(pid: number, limit: number): number {
  const pids = processesBelow(pid);
  const quick = sum(pids.map(quickMemory));
  return quick <= limit ? quick : sum(pids.map(exactMemory));
}

/**
 * Bytes that the files in a program's private folders use in addition to their pages; `pid` is one of its processes.
 * Until the sandbox has mounted its own folders, the paths lead to this machine's folders, whose files do not count.
 */
export function memoryOfFiles(pid: number, folders: readonly string[]): number {
  return sum(
    folders.map(folder => {
      try {
        const path = `/proc/${pid}/root${folder}`;
        if (statSync(path).dev === statSync(folder, { throwIfNoEntry: false })?.dev) return 0;
        const { files, ffree } = statfsSync(path);
        return (files - ffree) * fileBytes;
      } catch {
        return 0; // the process has ended, or its folders are being mounted
      }
    }),
  );
}

/** A process and all its descendants. Orphans stay below the first process of their namespace. */
export function processesBelow(pid: number): number[] {
  const found = [pid];
  for (const parent of found) {
    try {
      for (const thread of readdirSync(`/proc/${parent}/task`)) {
        const children = readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').trim();
        if (children !== '') for (const child of children.split(' ')) found.push(Number(child));
      }
    } catch {
      // The process or thread has ended. Its children have a new parent at the next call.
    }
  }
  return found;
}

/**
 * Resident or swapped pages not backed by a file on disk, plus their page tables; shared pages count once for each
 * process.
 */
function quickMemory(pid: number): number {
  return kibibytesOf(`/proc/${pid}/status`, /^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$/gm) * kibibyte;
}

/** As `quickMemory`, but each shared page is divided among the processes that share it. */
function exactMemory(pid: number): number {
  const shared = kibibytesOf(`/proc/${pid}/smaps_rollup`, /^(?:Pss_Anon|Pss_Shmem|SwapPss):\s+(\d+) kB$/gm);
  if (shared === 0) return quickMemory(pid);
  return (shared + kibibytesOf(`/proc/${pid}/status`, /^VmPTE:\s+(\d+) kB$/gm)) * kibibyte;
}

function kibibytesOf(file: string, lines: RegExp): number {
  try {
    return sum([...readFileSync(file, 'utf8').matchAll(lines)].map(([, kB]) => Number(kB)));
  } catch {
    return 0; // the process has ended
  }
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
