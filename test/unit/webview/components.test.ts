// @vitest-environment happy-dom
// The components that pages share, drawn without a page: the list's rows, keys and position, and values of controls.
import { html, render } from 'lit';
import { beforeEach, describe, expect, it } from 'vitest';
import { checkbox, dropdown, textField } from '../../../webview/components/controls';
import '../../../webview/components/plot-canvas';
import type { PlotCanvas } from '../../../webview/components/plot-canvas';
import '../../../webview/components/virtual-list';
import type { ListSource, VirtualList } from '../../../webview/components/virtual-list';
import type { PlotData } from '../../../extension/run-data/charts/plot-data';
import { createStore } from '../../../webview/shared/store';
import { partial } from '../../support/partial';
import { freshPage, press, recordingPlotter } from './page-host';

interface Item {
  key: string;
}
let root: HTMLElement;
beforeEach(() => (root = freshPage()));

describe('a virtual list', () => {
  /** Numbered items from `first` on, of which every fifth is a heading. */
  const source = (length: number, first = 0): ListSource<Item> => {
    const isHeading = (index: number) => (first + index) % 5 === 0;
    return {
      length,
      at: index => ({ key: String(first + index) }),
      find: key => (Number(key) - first < length ? Number(key) - first : -1),
      selectableFrom(index, direction) {
        let at = index;
        while (at >= 0 && at < length && isHeading(at)) at += direction;
        return at >= 0 && at < length ? at : -1;
      },
    };
  };
  const chosen: string[] = [];
  async function show(of: ListSource<Item>, selected: string | null = null): Promise<VirtualList> {
    const renderRow = ({ key }: Item) => ({
      ...{ content: key, label: `row ${key}`, class: 'row', selectable: Number(key) % 5 !== 0 },
    });
    const onChoose = ({ key }: Item): void => void chosen.push(key);
    render(
      html`<virtual-list
        .source=${of}
        .selected=${selected}
        .renderRow=${renderRow}
        .onChoose=${onChoose}
      ></virtual-list>`,
      root,
    );
    const list = root.querySelector<VirtualList>('virtual-list')!;
    await list.updateComplete;
    return list;
  }
  const rows = () => [...root.querySelectorAll('.list-row')].map(row => row.textContent?.trim());
  beforeEach(() => void chosen.splice(0));

  it('draws the rows on screen of a hundred thousand', async () => {
    const list = await show(source(100_000));
    expect([rows().length, rows()[0]]).toEqual([33, '0']);
    list.scrollTop = 24 * 500;
    list.dispatchEvent(new Event('scroll'));
    expect([rows()[0], list.top]).toEqual(['492', 500]);
  });

  it('moves the selection by keys, past headings, and brings it into view', async () => {
    const list = await show(source(1000), '4');
    press('ArrowDown', list);
    press('End', list);
    press('x', list);
    expect(chosen).toEqual(['6', '999']);
    await show(source(1000), '999');
    expect(list.getAttribute('aria-activedescendant')).toBe('row-999');
    expect(list.scrollTop).toBe(1000 * 24 - 600);
  });

  it('keeps the row at the top when rows are inserted above it', async () => {
    const list = await show(source(1000, 100));
    list.scrollTop = 24 * 51 + 3;
    await show(source(1100, 0));
    expect(list.scrollTop).toBe(24 * 151 + 3);
  });
});

describe('a plot’s canvas', () => {
  const { plotter, drawn } = recordingPlotter();
  const data = partial<PlotData>({ title: 'reward' });
  async function show(now: PlotData | null, x: number | null = null): Promise<PlotCanvas> {
    const crosshair = x === null ? null : { x, label: `at ${x}` };
    render(
      html`<plot-canvas
        .plotter=${plotter}
        .data=${now}
        .crosshair=${crosshair}
        .label=${now?.title ?? ''}
      ></plot-canvas>`,
      root,
    );
    const canvas = root.querySelector<PlotCanvas>('plot-canvas')!;
    await canvas.updateComplete;
    return canvas;
  }
  const crosshair = () => root.querySelector<HTMLElement>('.crosshair')!;
  beforeEach(() => drawn.clear());

  it('holds a plot while there is data, with its crosshair and name', async () => {
    await show(null, 7);
    const canvas = root.querySelector('canvas')!;
    expect([drawn.size, crosshair().hidden, canvas.hasAttribute('aria-label')]).toEqual([0, true, false]);
    await show(data, 7);
    expect([drawn.get(canvas), canvas.getAttribute('aria-label')]).toEqual([data, 'reward']);
    expect([crosshair().hidden, crosshair().style.transform]).toEqual([false, 'translateX(7px)']);
    expect(crosshair().textContent).toBe('at 7');
    await show(null);
    expect([drawn.size, crosshair().hidden]).toEqual([0, true]);
  });

  it('draws at once when its owner asks, keeps its plot when moved, and frees it when removed', async () => {
    const canvas = await show(null);
    canvas.data = data;
    canvas.flush();
    expect(drawn.size).toBe(1);
    root.append(canvas);
    await Promise.resolve();
    expect(drawn.size).toBe(1);
    canvas.remove();
    await Promise.resolve();
    expect(drawn.size).toBe(0);
  });
});

describe('controls', () => {
  type Control = HTMLElement & { value: string; checked: boolean };
  const control = () => root.firstElementChild as Control;

  it('take the value of the state, and report what the user changes', () => {
    const seen: unknown[] = [];
    const show = (value: 'a' | 'b') => {
      const choices = [['a', 'A'] as const, ['b', 'B'] as const];
      render(dropdown({ label: 'Letter', choices, value, onChange: now => seen.push(now) }), root);
    };
    show('b');
    expect(control().value).toBe('b');
    control().value = 'a';
    control().dispatchEvent(new Event('change'));
    show('b'); // the change was not accepted
    expect([control().value, seen]).toEqual(['b', ['a']]);
  });

  it('a checkbox does not report what was written to it', () => {
    const seen: boolean[] = [];
    const show = (checked: boolean) =>
      render(checkbox({ label: 'On', checked, onChange: now => seen.push(now) }), root);
    show(false);
    show(true);
    control().dispatchEvent(new Event('change')); // as the toolkit does
    expect([control().checked, seen]).toEqual([true, []]);
  });

  it('a text field keeps its label, and its text while it is edited', async () => {
    const show = (value: string) => render(textField({ label: 'Count', value, onInput: () => undefined }), root);
    show('8');
    control().setAttribute('aria-label', 'Text field'); // as the toolkit does
    await expect.poll(() => control().getAttribute('aria-label')).toBe('Count');
    control().tabIndex = 0;
    control().focus();
    control().value = '';
    show('8');
    expect(control().value).toBe('');
    control().blur();
    show('8');
    expect(control().value).toBe('8');
  });
});

it('a store draws an event of a control that is being drawn right afterwards', () => {
  const drawn: [number, number | undefined][] = [];
  const store = createStore(
    0,
    (state: number, by: number) => state + by,
    (state, before) => {
      drawn.push([state, before]);
      if (state === 1) store.dispatch(10);
    },
  );
  store.dispatch(1);
  store.dispatch(0);
  expect(drawn).toEqual([
    [0, undefined],
    [1, 0],
    [11, 1],
  ]);
});
