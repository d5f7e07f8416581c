// Runs whose end was not seen: newest first, each once, and kept over a reload of the window.
import { expect, test } from 'vitest';
import { UnseenEnds } from '../../../../../extension/vscode/runs/view/unseen-ends';

test('ends are listed until they are seen, also after a reload', () => {
  const kept = new Map<string, unknown>();
  const memory = {
    get: <T>(key: string) => kept.get(key) as T | undefined,
    update: async (key: string, value: unknown) => void kept.set(key, value),
  };
  const ends = new UnseenEnds(memory);
  expect(ends.folders).toEqual([]);
  ends.add('a');
  ends.add('b');
  ends.add('a');
  expect(new UnseenEnds(memory).folders).toEqual(['a', 'b']);
  expect(ends.see('a')).toBe(true);
  expect(ends.see('a')).toBe(false);
  expect(new UnseenEnds(memory).folders).toEqual(['b']);
});
