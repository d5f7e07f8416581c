// The commands of a chart: keyboard shortcuts, the buttons in its head, and its menu.
import { html, type TemplateResult } from 'lit';
import { button } from '../../components/controls';
import type { MenuItem } from '../../components/menu';
import { keysOf } from '../../../extension/run-data/charts/catalogue';
import type { ChartElement } from './chart-element';
import { newestFirst } from './chart-table';
import type { ChartSpec } from '../../../extension/run-data/charts/catalogue';
import type { Limits } from '../../../extension/run-data/charts/axis';
import type { PlotData } from '../../../extension/run-data/charts/plot-data';
import { pictureSize, svgOf } from '../../../extension/run-data/charts/svg-plot';

/** A key of a chart with the focus. `id` is the chart's id. */
interface ChartKey<C extends ChartElement> {
  readonly does: string;
  run(chart: C, id: string, event: KeyboardEvent): void;
}

/** The part of a metric chart that its menu and its shortcuts use; implemented in metric-chart.ts. */
export interface MenuChart extends ChartElement {
  readonly spec: ChartSpec;
  /** Whether the y scale is logarithmic. */
  readonly log: boolean;
  /** Whether the y axis leaves out outliers. */
  readonly clipped: boolean;
  /** Ends of the y axis that the user has set; null without. */
  readonly limits: Limits | null;
  /** Returns the drawing for an exported picture; null if no line has a value. */
  picture(): PlotData | null;
}

/** The part of a chart against an expression that its menu uses; implemented in scatter-chart.ts. */
export interface MenuScatter extends ChartElement {
  readonly spec: ChartSpec;
  /** Returns an exported picture of size `pictureSize` as SVG; null without a point. */
  svg(): string | null;
}

/** The keys that every chart has, including the score chart. */
export const arrangementKeys: Readonly<Record<string, ChartKey<ChartElement>>> = {
  ArrowLeft: { does: 'Move the crosshair', run: ({ tools }) => tools.actions.hoverBy(-1) },
  ArrowRight: { does: 'Move the crosshair', run: ({ tools }) => tools.actions.hoverBy(1) },
  '<': { does: 'Move the chart to the left', run: ({ tools }, id) => tools.actions.move(id, -1) },
  '>': { does: 'Move the chart to the right', run: ({ tools }, id) => tools.actions.move(id, 1) },
  p: { does: 'Pin the chart to the top', run: ({ tools }, id) => tools.actions.toggle(id, 'pinned') },
  Enter: { does: 'Enlarge or shrink', run: ({ tools }, id) => tools.actions.toggle(id, 'enlarged') },
  f: { does: 'Fill the page, or end this', run: ({ tools }, id) => tools.actions.fill(id) },
  m: { does: 'Open the menu', run: chart => chart.openMenu() },
};

/** The keys of a chart of metrics. */
export const metricChartKeys: Readonly<Record<string, ChartKey<MenuChart>>> = {
  ...arrangementKeys,
  ArrowLeft: {
    does: 'Move the crosshair; with Shift, the visible part',
    run: ({ tools: { actions } }, _, { shiftKey }) => (shiftKey ? actions.panBy('left') : actions.hoverBy(-1)),
  },
  ArrowRight: {
    does: 'Move the crosshair; with Shift, the visible part',
    run: ({ tools: { actions } }, _, { shiftKey }) => (shiftKey ? actions.panBy('right') : actions.hoverBy(1)),
  },
  PageUp: { does: 'Move the crosshair by ten rows', run: ({ tools }) => tools.actions.hoverBy(-10) },
  PageDown: { does: 'Move the crosshair by ten rows', run: ({ tools }) => tools.actions.hoverBy(10) },
  '+': { does: 'Zoom in', run: ({ tools }) => tools.actions.zoomBy(0.5, null) },
  '-': { does: 'Zoom out', run: ({ tools }) => tools.actions.zoomBy(2, null) },
  l: { does: 'Logarithmic or linear scale', run: ({ tools }, id) => tools.actions.toggle(id, 'log') },
  c: { does: 'Leave outliers out of the y axis', run: ({ tools }, id) => tools.actions.toggle(id, 'clipped') },
  y: { does: 'Set the ends of the y axis', run: ({ tools, spec }) => tools.actions.editLimits(spec) },
  ' ': arrangementKeys.Enter,
};

/** Renders the buttons in the head: toggle the table, change the size, open the menu. */
export function chartButtons(chart: ChartElement & { readonly spec: ChartSpec }): TemplateResult {
  const { large, full, table, tools } = chart;
  const { id, title } = chart.spec;
  const isOpen = table !== null;
  return html`${button({
    label: `${isOpen ? 'Chart' : 'Table'} of ${title}`,
    icon: isOpen ? 'chart' : 'table',
    iconOnly: true,
    pressed: isOpen,
    onClick: () => tools.actions.table(id, isOpen ? null : newestFirst),
  })}${button({
    label: full ? `End filling the page with ${title}` : `${large ? 'Shrink' : 'Enlarge'} ${title}`,
    icon: large || full ? 'shrink' : 'grow',
    iconOnly: true,
    onClick: () => (full ? tools.actions.fill(id) : tools.actions.toggle(id, 'enlarged')),
  })}${button({
    label: `More about ${title}`,
    icon: 'more',
    iconOnly: true,
    hasPopup: true,
    onClick: () => chart.openMenu(),
  })}`;
}

export function chartMenu(chart: MenuChart): (MenuItem | null)[] {
  const { actions } = chart.tools;
  const { id } = chart.spec;
  const [pin, ...sizes] = arrangementItems(id, chart);
  const picture = (format: 'png' | 'svg') => (): void => {
    const data = chart.picture();
    if (data) actions.exportPicture(id, format, svgOf(data, pictureSize));
  };
  return [
    pin,
    { label: 'Logarithmic scale', key: 'l', checked: chart.log, run: () => actions.toggle(id, 'log') },
    { label: 'Leave out outliers', key: 'c', checked: chart.clipped, run: () => actions.toggle(id, 'clipped') },
    { label: 'Set the y axis…', key: 'y', checked: chart.limits !== null, run: () => actions.editLimits(chart.spec) },
    ...sizes,
    null,
    { label: 'Zoom in', key: '+', run: () => actions.zoomBy(0.5, null) },
    { label: 'Zoom out', key: '-', run: () => actions.zoomBy(2, null) },
    { label: 'Show all steps', key: '0', run: () => actions.show(null) },
    null,
    ...panelItems(chart),
    null,
    ...exportItems(chart, picture),
  ];
}

/** Returns the menu of a chart against an expression. */
export function scatterMenu(chart: MenuScatter): (MenuItem | null)[] {
  const picture = (format: 'png' | 'svg') => (): void => {
    const svg = chart.svg();
    if (svg !== null) chart.tools.actions.exportPicture(chart.spec.id, format, svg);
  };
  return [...arrangementItems(chart.spec.id, chart), null, ...panelItems(chart), null, ...exportItems(chart, picture)];
}

/** Returns the items that change a chart of the user, or make one from another chart. */
function panelItems({ spec, tools: { actions } }: ChartElement & { readonly spec: ChartSpec }): MenuItem[] {
  const { panel, lines } = spec;
  if (!panel) {
    const y = lines.map(({ key }) => key).join('; ');
    return [{ label: 'New chart from these metrics…', run: () => actions.editPanel(null, y) }];
  }
  return [
    { label: 'Edit…', run: () => actions.editPanel(panel) },
    { label: 'Remove', run: () => actions.removePanel(panel) },
  ];
}

const exportItems = (
  { spec, tools: { actions } }: ChartElement & { readonly spec: ChartSpec },
  picture: (format: 'png' | 'svg') => () => void,
): MenuItem[] => [
  { label: 'Export as CSV…', run: () => actions.exportRows(spec.id, keysOf(spec)) },
  { label: 'Export as PNG…', run: picture('png') },
  { label: 'Export as SVG…', run: picture('svg') },
];

/** Returns the menu items that every chart has, including the score chart. */
export function arrangementItems(id: string, { tools, pinned, large, full }: ChartElement): (MenuItem | null)[] {
  const { toggle, move, fill } = tools.actions;
  return [
    { label: 'Pin to the top', key: 'p', checked: pinned, run: () => toggle(id, 'pinned') },
    { label: large ? 'Shrink' : 'Enlarge', key: 'Enter', run: () => toggle(id, 'enlarged') },
    { label: 'Fill the page', key: 'f', checked: full, run: () => fill(id) },
    null,
    { label: 'Move left', key: '<', run: () => move(id, -1) },
    { label: 'Move right', key: '>', run: () => move(id, 1) },
  ];
}
