// Implements the user actions of the page as events for the reducer and requests to the host.
import {
  dashboardCommand,
  dashboardEpisode,
  dashboardExport,
  type Export,
} from '../../extension/protocol/dashboard-page';
import { messageOf, type Host } from '../shared/host';
import type { Charts } from './charts/chart-sections';
import { nearestRow } from './charts/chart-context';
import type { DashboardActions } from './actions';
import { editLimits, editPanel } from './charts/chart-forms';
import { pictureExport, rowsExport, shownExport } from './charts/chart-export';
import type { DashboardEvent } from './reducer';
import { endingKey, type DashboardState } from './state';
import { panned, spansOf, zoomed } from './charts/zoom';

/** Dependencies of the actions. */
export interface ActionsOptions {
  readonly host: Host;
  readonly root: HTMLElement;
  connect(): void;
  state(): DashboardState;
  dispatch(event: DashboardEvent): void;
  /** Inputs of all charts; null before the first snapshot. */
  charts(): Charts | null;
}

export function dashboardActions({ host, root, connect, state, dispatch, charts }: ActionsOptions): DashboardActions {
  const write = async (file: Export | Promise<Export>): Promise<void> => {
    try {
      await host.request(dashboardExport, await file);
    } catch (error) {
      dispatch({ type: 'refused', message: messageOf(error) });
    }
  };
  const actions: DashboardActions = {
    connect,
    command: command => host.notify(dashboardCommand, { command }),
    openEpisode: id => host.notify(dashboardEpisode, { id }),
    change: part => dispatch({ type: 'settings', part }),
    fold: group => dispatch({ type: 'fold', group }),
    search: text => dispatch({ type: 'search', text }),
    closeEnding: () => dispatch({ type: 'settings', part: { closedEnding: endingKey(state().run!) } }),
    dismiss: () => dispatch({ type: 'refused', message: null }),
    hover: x => dispatch({ type: 'hover', row: x === null ? null : nearestRow(charts()!.context, x) }),
    hoverBy: rows => dispatch({ type: 'hover-by', rows }),
    toggle: (id, toggles) => dispatch({ type: 'chart', id, toggles }),
    table: (id, sort) => dispatch({ type: 'table', id, sort }),
    fill: id => dispatch({ type: 'full', id }),
    editLimits: spec => editLimits(spec, state().settings.limits, limits => actions.change({ limits })),
    editPanel: (panel, y) => editPanel(panel, y, state(), part => actions.change(part)),
    removePanel: panel => actions.change({ panels: state().settings.panels.filter(({ id }) => id !== panel.id) }),
    openEvent(event) {
      dispatch({ type: 'open', event });
      const row = root.querySelector<HTMLElement>('.event-table .opened');
      row?.scrollIntoView({ block: 'nearest' });
      row?.focus();
    },
    move(id, to) {
      const focused = document.activeElement;
      dispatch({ type: 'move', id, to });
      if (focused instanceof HTMLElement && focused !== document.activeElement) focused.focus();
    },
    zoomBy(factor, about) {
      const { context } = charts()!;
      const { hovered, settings } = state();
      const { whole, shown } = spansOf(context, settings.zoom);
      const middle = about ?? (hovered === null ? (shown.from + shown.to) / 2 : context.xs[hovered]);
      actions.show(zoomed(shown, whole, factor, middle));
    },
    panBy(distance) {
      const { zoom } = state().settings;
      if (!zoom) return;
      const { whole, shown } = spansOf(charts()!.context, zoom);
      const quarter = (shown.to - shown.from) / 4;
      actions.show(panned(shown, whole, distance === 'left' ? -quarter : distance === 'right' ? quarter : distance));
    },
    show: zoom => actions.change({ zoom }),
    exportShown: () => void write(shownExport(state(), charts()!.groups, charts()!.context)),
    exportRows: (id, keys) => void write(rowsExport(id, keys, charts()!.context, state().settings)),
    exportPicture: (id, format, svg) => void write(pictureExport(id, format, svg)),
  };
  return actions;
}
