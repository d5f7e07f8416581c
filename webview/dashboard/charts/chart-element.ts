// Base class of the dashboard's charts. It tracks whether the chart is on screen. Off screen, a chart requests and
// draws nothing and holds no canvas memory.
import type { PropertyDeclarations, PropertyValues } from 'lit';
import type { RunEvent } from '../../../extension/run-data/run-events';
import type { Host } from '../../shared/host';
import type { ChartSpec, Panel } from '../../../extension/run-data/charts/catalogue';
import type { ChartContext } from './chart-context';
import type { DrawQueue } from '../../charts/draw-queue';
import type { OnScreen } from '../../components/on-screen';
import { QueuedChart } from '../../components/queued-chart';
import type { Plotter } from '../../charts/plot';
import type { ChartSetting } from '../reducer';
import type { Sort } from '../run/table-sorting';
import type { Span } from './zoom';

/** User actions of a chart. */
export interface ChartActions {
  /** Moves the crosshair to an x value; null hides it. */
  hover(x: number | null): void;
  /** Moves the crosshair by a number of rows. */
  hoverBy(rows: number): void;
  openEvent(event: RunEvent): void;
  /** Lets the chart fill the page, or ends this. */
  fill(id: string): void;
  /** Asks for the ends of the chart's y axis. */
  editLimits(spec: ChartSpec): void;
  /** Asks for the expressions of a chart of the user; null for a further chart. `y` is the first content of its field. */
  editPanel(panel: Panel | null, y?: string): void;
  removePanel(panel: Panel): void;
  toggle(id: string, setting: ChartSetting): void;
  /** Moves the chart within its group: by a number of positions, or to the place before another chart. */
  move(id: string, to: number | string): void;
  /** Replaces the drawing by a table sorted by `sort`; null shows the drawing again. */
  table(id: string, sort: Sort | null): void;
  zoomBy(factor: number, about: number | null): void;
  panBy(distance: number | 'left' | 'right'): void;
  show(part: Span | null): void;
  exportRows(id: string, keys: readonly string[]): void;
  /** Exports a picture of size `pictureSize`, given as SVG. */
  exportPicture(id: string, format: 'png' | 'svg', svg: string): void;
}

/** Services shared by all charts; constant while the page is open. */
export interface ChartTools {
  readonly host: Pick<Host, 'request'>;
  readonly plotter: Plotter;
  readonly queue: DrawQueue;
  readonly screen: OnScreen;
  readonly actions: ChartActions;
}

/** Properties whose changes do not update a chart while it is off screen. */
const onScreenOnly: ReadonlySet<PropertyKey> = new Set(['context', 'hovered', 'isOnScreen']);

export abstract class ChartElement extends QueuedChart {
  static override properties: PropertyDeclarations = {
    context: { attribute: false },
    hovered: { attribute: false },
    large: { attribute: false },
    full: { attribute: false },
    pinned: { attribute: false },
    table: { attribute: false },
    isOnScreen: { state: true },
  };

  declare tools: ChartTools;
  declare context: ChartContext;
  /** Row of the crosshair; null if it is hidden. */
  declare hovered: number | null;
  declare large: boolean;
  /** Whether the chart fills the page. */
  declare full: boolean;
  declare pinned: boolean;
  /** Sort order of the table that replaces the drawing; null shows the drawing. */
  declare table: Sort | null;
  declare protected isOnScreen: boolean;

  constructor() {
    super();
    this.hovered = null;
    this.large = false;
    this.full = false;
    this.pinned = false;
    this.table = null;
    this.isOnScreen = false;
  }

  /** Whether the chart has room for more ticks and texts. */
  get roomy(): boolean {
    return this.large || this.full;
  }

  /** Opens the chart's menu. */
  abstract openMenu(): void;

  /** Called when the chart enters the screen; requests its data. */
  protected abstract enterScreen(): void;

  /** Whether the last drawing is still valid for the current properties. */
  protected abstract isCurrent(): boolean;

  /** Called when the chart leaves the screen; frees data that is only needed on screen. */
  protected leaveScreen(): void {
    this.isOnScreen = false;
  }

  protected override shouldUpdate(changed: PropertyValues): boolean {
    if (!this.hasUpdated) return true;
    const keys = [...changed.keys()];
    if (!this.isOnScreen) return keys.some(key => !onScreenOnly.has(key));
    return keys.some(key => key !== 'context') || !this.isCurrent();
  }

  protected override appear(isOnScreen: boolean): void {
    if (isOnScreen === this.isOnScreen) return;
    if (!isOnScreen) return this.leaveScreen();
    this.isOnScreen = true;
    this.enterScreen();
  }
}
