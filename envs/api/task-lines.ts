// The tasks of an environment: the lines of a JSONL file. The seed of an episode chooses its line, so all members of a
// group have the same task.
import { readFileSync } from 'node:fs';
import { MissingDependency } from './environment';

/** Maximum bytes of a task file. */
const maxTaskBytes = 256 * 2 ** 20;

/**
 * Returns the tasks of a file, each as the JSON text of its line.
 * @throws MissingDependency if the file cannot be read, is empty, or has a line that is not JSON
 */
export function readTasks(file: string): string[] {
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
