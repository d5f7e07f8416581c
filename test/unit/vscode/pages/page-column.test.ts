// The column of a new page: beside code only in a wide window, never in a third column.
import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';

vi.mock('vscode', () => ({ ViewColumn: { Active: -1, Beside: -2 }, window: {} }));

const { besideText, leastWidth } = await import('../../../../extension/vscode/pages/page-column');
const [active, beside] = [-1, -2];

describe('a page opens', () => {
  it('in the active column if no text editor is active', () => {
    expect(besideText(undefined, [1, 2], 2000)).toBe(active);
  });

  it('beside code if the window is wide, or its width is not known', () => {
    expect(besideText(1, [1], leastWidth)).toBe(beside);
    expect(besideText(1, [1], undefined)).toBe(beside);
  });

  it('in front of code if the window is narrow', () => {
    expect(besideText(1, [1], leastWidth - 1)).toBe(active);
  });

  it('in an existing other column, whatever the width, so that no third one opens', () => {
    const columns = fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { minLength: 2 });
    fc.assert(
      fc.property(columns, fc.option(fc.integer({ min: 300, max: 4000 }), { nil: undefined }), (groups, width) => {
        const column = besideText(groups[0], groups, width);
        expect(groups.slice(1)).toContain(column);
      }),
    );
  });
});
