// Measures an isolated program's memory from outside: the memory of all its processes plus the memory of the files in
// its private folders. This file finds the processes by listing the children of every thread. A quick measurement
// counts a shared page once per process. If this measurement exceeds the limit, an exact measurement counts each shared
// page only once. Both measurements omit the kernel's own structures for a process, which only a cgroup counts.
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs';

/** Bytes of kernel memory for a file's inode and name, in addition to the file's pages. */
const fileBytes = 1536;
const kibibyte = 1024;

/**
 * Returns the bytes of memory that a process and all its descendants use.
 * @param limit bytes; the slower, exact measurement is made only if the quick measurement exceeds this limit
 */
export function memoryOf(pid: number, limit: number): number {
  const pids = processesBelow(pid);
  const quick = sum(pids.map(quickMemory));
  return quick <= limit ? quick : sum(pids.map(exactMemory));
}

/**
 * Returns the bytes that the files in a program's private folders use in addition to their pages. Returns 0 until the
 * sandbox has mounted its own folders, because until then the paths refer to folders of this machine.
 * @param pid id of one of the program's processes
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

/**
 * Returns the ids of a process and all its descendants. Orphans remain descendants, because the first process of their
 * namespace adopts them.
 */
export function processesBelow(pid: number): number[] {
  const found = [pid];
  for (const parent of found) {
    try {
      for (const thread of readdirSync(`/proc/${parent}/task`)) {
        const children = readFileSync(`/proc/${parent}/task/${thread}/children`, 'utf8').trim();
        if (children !== '') for (const child of children.split(' ')) found.push(Number(child));
      }
    } catch {
      // the process or thread has ended; the next call finds its children under their new parent
    }
  }
  return found;
}

/**
 * Returns the bytes of all resident or swapped pages that are not part of a file on disk, plus the bytes of the page
 * tables. A shared page is counted in full for each process.
 */
function quickMemory(pid: number): number {
  return kibibytesOf(`/proc/${pid}/status`, /^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s+(\d+) kB$/gm) * kibibyte;
}

/**
 * Measures like `quickMemory`, but divides the size of each shared page by the number of processes that share the page.
 */
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
