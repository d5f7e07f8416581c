// The script of an HTML report. Under the pointer, or while a chart has the focus and an arrow key is pressed, a chart
// shows a crosshair and the values of its lines. Before printing, all episodes are opened.
import { formatNumber } from '../../extension/common/numbers';
import { formatValue } from '../../extension/common/format-values';
import { relativePosition } from '../../extension/run-data/charts/axis';
import { neighbour, valuesAt, type ChartReading } from '../../extension/run-data/report/chart-reading';

const svgSpace = 'http://www.w3.org/2000/svg';

for (const figure of document.querySelectorAll<HTMLElement>('figure.chart')) {
  const reading = JSON.parse(figure.querySelector('script')?.textContent ?? '') as ChartReading;
  const picture = figure.querySelector('svg');
  if (picture) readChart(figure, picture, reading);
}

addEventListener('beforeprint', () => {
  for (const episode of document.querySelectorAll('details')) episode.open = true;
});

function readChart(figure: HTMLElement, picture: SVGSVGElement, reading: ChartReading): void {
  const { area, x, y, log, unit } = reading;
  const cross = document.createElementNS(svgSpace, 'g');
  cross.setAttribute('class', 'cross');
  picture.append(cross);
  picture.setAttribute('tabindex', '0');
  const tip = document.createElement('div');
  tip.className = 'tip';
  tip.setAttribute('role', 'status');
  tip.hidden = true;
  figure.append(tip);
  let shown: number | null = null;

  const atX = (value: number): number => area.left + relativePosition(value, x) * (area.right - area.left);
  const atY = (value: number): number => area.bottom - relativePosition(value, y, log) * (area.bottom - area.top);
  const hide = (): void => {
    shown = null;
    tip.hidden = true;
    cross.replaceChildren();
  };
  const show = (position: number): void => {
    const found = valuesAt(reading, position);
    if (!found) return hide();
    shown = found.x;
    const left = atX(found.x);
    const line = element('line', { x1: left, x2: left, y1: area.top, y2: area.bottom });
    const dots = found.values.map(({ y: value, colour }) =>
      element('circle', { cx: left, cy: atY(value), r: 3, fill: colour }),
    );
    cross.replaceChildren(line, ...dots);
    const rows = found.values.map(({ label, y: value, colour }) => {
      const row = document.createElement('div');
      const swatch = document.createElementNS(svgSpace, 'svg');
      swatch.setAttribute('class', 'swatch');
      swatch.append(element('circle', { cx: 4, cy: 4, r: 4, fill: colour }));
      row.append(swatch, ` ${label}: `, strong(formatValue(value, unit)));
      return row;
    });
    tip.replaceChildren(strong(`step ${formatNumber(found.x)}`), ...rows);
    tip.hidden = false;
    const isRight = left > (area.left + area.right) / 2;
    tip.classList.toggle('at-left', isRight);
  };

  picture.addEventListener('pointermove', event => {
    const { left, width } = picture.getBoundingClientRect();
    const at = ((event.clientX - left) / width) * area.width;
    show(x.min + ((at - area.left) / (area.right - area.left)) * (x.max - x.min));
  });
  picture.addEventListener('pointerleave', hide);
  picture.addEventListener('blur', hide);
  picture.addEventListener('keydown', event => {
    if (event.key === 'Escape') return hide();
    const direction = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : null;
    if (direction === null) return;
    event.preventDefault();
    const next = shown === null ? (direction === 1 ? x.min : x.max) : neighbour(reading, shown, direction);
    if (next !== null) show(next);
  });
}

function element(name: 'line' | 'circle', attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS(svgSpace, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

function strong(text: string): HTMLElement {
  const made = document.createElement('strong');
  made.textContent = text;
  return made;
}
