// A small picture of an arm's result: a dot for each seed and, below, one line per interval as seeds were added, the
// newest and narrowest at the bottom with its mean. All arms share one scale.
import { html, svg, type TemplateResult } from 'lit';
import { formatValue, type Unit } from '../shared/format';
import type { Arm } from './arms';

const width = 180;
/** Space at both ends, so that marks at the ends are complete. */
const margin = 4;
const seedsAt = 5;
const firstLineAt = 12;
const lineStep = 3;
/** Most intervals that are drawn; older ones are left out. */
const mostLines = 5;

/** Renders the picture. `domain` is the range of the scale. */
export function intervalPicture(arm: Arm, { low, high }: { low: number; high: number }, unit: Unit): TemplateResult {
  const span = high - low || 1;
  const x = (value: number): number => margin + Math.min(1, Math.max(0, (value - low) / span)) * (width - 2 * margin);
  const lines = arm.history.slice(-mostLines);
  const height = firstLineAt + Math.max(1, lines.length) * lineStep + 2;
  return html`<svg
    class="interval-picture"
    role="img"
    aria-label=${descriptionOf(arm, unit)}
    viewBox="0 0 ${width} ${height}"
    width=${width}
    height=${height}
  >
    <title>${descriptionOf(arm, unit)}</title>
    ${[...arm.values.values()].map(value => svg`<circle cx=${x(value)} cy=${seedsAt} r="3"></circle>`)}
    ${lines.map(({ mean, interval }, i) => {
      const y = firstLineAt + i * lineStep;
      const isNewest = i === lines.length - 1;
      const [from, to] = [x(mean - interval!), x(mean + interval!)];
      return svg`<path class=${isNewest ? 'newest' : 'older'} d="M${from} ${y}H${to}"></path>${
        isNewest ? svg`<path class="newest mean" d="M${x(mean)} ${y - 4}V${y + 4}"></path>` : ''
      }`;
    })}
  </svg>`;
}

/** Says the mean, and how the interval narrowed. */
export function descriptionOf({ estimate, history, values }: Arm, unit: Unit): string {
  if (!estimate) return 'No values yet';
  const mean = `Mean ${formatValue(estimate.mean, unit)} over ${values.size} ${values.size === 1 ? 'seed' : 'seeds'}`;
  if (history.length === 0) return `${mean}; an interval needs three seeds`;
  const widths = history.slice(-mostLines).map(({ interval, n }) => `± ${formatValue(interval!, unit)} with ${n}`);
  return `${mean}; 95 % interval ${widths.join(', ')} seeds`;
}
