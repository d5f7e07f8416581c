// Task files: validation has its own file or that of training, and a file is read again only when it has changed.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readTasks, tasksFor } from '../../../../envs/api/task-lines';
import { temporaryFolder } from '../../../support/temporary-folder';

const folder = temporaryFolder();

test('validation has its own file, or that of training', () => {
  writeFileSync(join(folder(), 'a.jsonl'), '{"a": 1}\n\n2\n');
  writeFileSync(join(folder(), 'b.jsonl'), '"b"\n');
  const files = { folder: folder(), tasks: 'a.jsonl', val_tasks: null };
  expect(tasksFor(files, 'train')).toEqual(['{"a":1}', '2']);
  expect(tasksFor(files, 'val')).toEqual(['{"a":1}', '2']);
  expect(tasksFor({ ...files, val_tasks: 'b.jsonl' }, 'val')).toEqual(['"b"']);
  expect(tasksFor({ ...files, tasks: null }, 'train')).toBeUndefined();
  expect(tasksFor({ ...files, tasks: null, val_tasks: 'b.jsonl' }, 'val')).toEqual(['"b"']);
});

test('an unchanged file is read once, and a changed or removed one again', () => {
  const file = join(folder(), 'tasks.jsonl');
  writeFileSync(file, '1\n');
  const first = readTasks(file);
  expect(readTasks(file)).toBe(first);
  writeFileSync(file, '1\n2\n');
  expect(readTasks(file)).toEqual(['1', '2']);
  rmSync(file);
  expect(() => readTasks(file)).toThrow(`cannot read the tasks in ${file} (ENOENT: no such file or directory, open`);
});
