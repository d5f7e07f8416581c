// Opens a dashboard in a test, with a host in memory and a plotter that records what it draws.
import { vi } from 'vitest';
import { startDashboard } from '../../../../webview/dashboard/page';
import type { Scenario } from '../../../e2e/preview/memory-host';
import { freshPage, pageHost, recordingPlotter, settle, stubVisibility } from '../page-host';

export type Visibility = ReturnType<typeof stubVisibility>;

/** Replaces what happy-dom lacks; call it before each test. */
export function stubDrawing(): Visibility {
  vi.spyOn(performance, 'now').mockReturnValue(0); // a frame that never runs out of time: everything due is drawn in it
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  return stubVisibility();
}

/** Every group of the dashboard. */
export const groups = [
  'task',
  'policy',
  'stability',
  'collapse',
  'filter',
  'environments',
  'throughput',
  'timing',
  'other',
];
/** Saved settings of a page whose groups are all expanded. */
export const expanded = { folder: '/runs/one', schema: 3, view: { open: groups, redundant: true } };

/** Opens the page: with all groups expanded, or with the settings `kept`; null for a page without settings. */
export async function open(scenario: Scenario, kept: unknown = expanded) {
  const root = freshPage();
  const host = pageHost(scenario, kept ?? undefined);
  const { plotter, drawn } = recordingPlotter();
  startDashboard(host, root, plotter);
  await settle();
  const card = (title: string) => root.querySelector<HTMLElement>(`[data-chart="${title}"]`)!;
  const plot = (title: string) => drawn.get(card(title)?.querySelector('canvas') as HTMLCanvasElement)!;
  const text = (selector: string) => root.querySelector(selector)?.textContent ?? '';
  return { root, host, drawn, card, plot, text };
}

export const click = (element: Element | null | undefined) =>
  element!.dispatchEvent(new MouseEvent('click', { bubbles: true }));
