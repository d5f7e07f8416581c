// Notes written from the run table: the complete text is replaced, unless another program has changed it.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readNotes, writeNotes } from '../../../../extension/vscode/run-files/run-labels';
import { temporaryFolder } from '../../../support/temporary-folder';

const temporary = temporaryFolder();

it('notes are replaced as a whole, and nothing else is left in the folder', async () => {
  expect(await readNotes(temporary())).toBe('');
  await writeNotes(temporary(), '', 'first\n');
  await writeNotes(temporary(), 'first\n', 'second\n');
  expect(await readNotes(temporary())).toBe('second\n');
  expect(readdirSync(temporary())).toEqual(['notes.md']);
});

it('notes that were changed since they were read are not overwritten', async () => {
  const file = join(temporary(), 'notes.md');
  writeFileSync(file, 'from the editor\n');
  await expect(writeNotes(temporary(), '', 'from the table\n')).rejects.toThrow(/was changed in the meantime: open it/);
  expect(readFileSync(file, 'utf8')).toBe('from the editor\n');
  expect(readdirSync(temporary())).toEqual(['notes.md']);
});

it('a folder in place of the notes is refused', async () => {
  mkdirSync(join(temporary(), 'notes.md'));
  await expect(readNotes(temporary())).rejects.toThrow(/is a folder, not a regular file/);
});
