// The notebook of a run: valid cells of nbformat 4.5, and no text of a run becomes Python or Markdown.
import { expect, test } from 'vitest';
import { notebookText } from '../../../extension/run-data/notebook';

interface Notebook {
  nbformat: number;
  nbformat_minor: number;
  cells: { id: string; cell_type: string; source: string[]; outputs?: unknown[] }[];
}
const notebook = (name: string, folder: string): Notebook =>
  JSON.parse(notebookText({ id: 'run-1', name, folder })) as Notebook;

test('has cells with unique ids, without outputs', () => {
  const { nbformat, nbformat_minor, cells } = notebook('a', '/runs/run-1');
  expect([nbformat, nbformat_minor]).toEqual([4, 5]);
  expect(new Set(cells.map(({ id }) => id)).size).toBe(cells.length);
  for (const { cell_type, outputs, source } of cells) {
    expect(outputs).toEqual(cell_type === 'code' ? [] : undefined);
    expect(source.slice(0, -1).every(line => line.endsWith('\n'))).toBe(true);
  }
  expect(notebookText({ id: 'r', name: 'n', folder: 'f' })).toBe(notebookText({ id: 'r', name: 'n', folder: 'f' }));
});

test('quotes the path, and escapes the name', () => {
  const folder = 'C:\\runs\\"); import os; os.system("x\n';
  const { cells } = notebook('# <script> [x](y)\n`z`', folder);
  expect(cells.find(({ id }) => id === 'run')!.source).toContain(`run = Path(${JSON.stringify(folder)})\n`);
  expect(cells[0].source[0]).toBe('# \\# \\<script\\> \\[x\\]\\(y\\) \\`z\\`\n');
});
