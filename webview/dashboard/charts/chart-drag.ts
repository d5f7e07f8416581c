// Dragging a chart by its head to the position of another chart.

/** Data type of a dragged chart; drops of other data types are rejected. */
const type = 'application/x-ragen-chart';

/** Handles drag and drop on `chart`; calls `dropped` with the id of a chart dropped on it. */
export function listenForDrags(chart: HTMLElement, id: () => string, dropped: (id: string) => void): void {
  chart.addEventListener('dragstart', event => {
    event.dataTransfer?.setData(type, id());
    chart.classList.add('dragged');
  });
  chart.addEventListener('dragend', () => chart.classList.remove('dragged'));
  chart.addEventListener('dragover', event => {
    if (!event.dataTransfer?.types.includes(type)) return;
    event.preventDefault();
    chart.classList.add('drop');
  });
  chart.addEventListener('dragleave', () => chart.classList.remove('drop'));
  chart.addEventListener('drop', event => {
    chart.classList.remove('drop');
    const other = event.dataTransfer?.getData(type);
    if (!other) return;
    event.preventDefault();
    dropped(other);
  });
}
