// The tasks of an environment: the lines of a JSONL file. The seed of an episode chooses its line, so all members of a
// group have the same task. Environments are created anew for each episode, so a file is read again only when it has
// changed.
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { MissingDependency } from './environment';

/** Maximum bytes of a task file. */
const maxTaskBytes = 256 * 2 ** 20;

/** The files of an environment's tasks, as it is configured: JSONL files relative to `folder`. */
export interface TaskFiles {
  folder: string;
  tasks: string | null;
  /** File for validation; null: `tasks` is used. */
  val_tasks: string | null;
}

/**
 * Returns the tasks for a mode; undefined if no file is configured.
 * @throws MissingDependency as `readTasks` does
 */
export function tasksFor({ folder, tasks, val_tasks }: TaskFiles, mode: 'train' | 'val'): string[] | undefined {
  const file = mode === 'val' ? (val_tasks ?? tasks) : tasks;
  return file === null ? undefined : readTasks(resolve(folder, file));
}

/** The tasks of each file as it was last read, and what tells that the file has not changed since. */
const known = new Map<string, { stamp: string; tasks: string[] }>();

/**
 * Returns the tasks of a file, each as the JSON text of its line.
 * @throws MissingDependency if the file cannot be read, is empty, or has a line that is not JSON
 */
export function readTasks(file: string): string[] {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  const stamp = found && `${found.ino} ${found.size} ${found.mtimeNs}`;
  const kept = known.get(file);
  if (kept !== undefined && kept.stamp === stamp) return kept.tasks;
  const tasks = parseTasks(file);
  if (stamp !== undefined) known.set(file, { stamp, tasks });
  return tasks;
}

function parseTasks(file: string): string[] {
  const remedy = 'set env_config.tasks to a file with one JSON value in each line';
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new MissingDependency(`cannot read the tasks in ${file} (${(error as Error).message})`, remedy);
  }
  if (text.length > maxTaskBytes)
    throw new MissingDependency(`cannot use the tasks in ${file}, which are longer than ${maxTaskBytes} bytes`, remedy);
  const tasks: string[] = [];
  text.split('\n').forEach((line, index) => {
    if (line.trim() === '') return;
    try {
      tasks.push(JSON.stringify(JSON.parse(line)));
    } catch {
      throw new MissingDependency(`cannot use line ${index + 1} of ${file}, which is not JSON`, remedy);
    }
  });
  if (tasks.length === 0) throw new MissingDependency(`has no tasks in ${file}`, remedy);
  return tasks;
}

/** Returns the task of a seed. */
export const taskOf = (tasks: readonly string[], seed: number): string => tasks[seed % tasks.length];
