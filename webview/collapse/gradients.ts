// Gradients of the loss's parts by bucket of prompt groups, from the lowest score deviation to the highest: norms as
// bars, the ratio of each to its noise, and whether the parts point in the same direction. A sentence above summarizes
// them.
import type { GradientAnalysisRecord } from '../../extension/run-data/diagnostics';
import { maximum } from '../../extension/common/lists';
import { h, replaceChildren, setAttribute } from '../shared/dom';
import { formatNumber } from '../shared/format';
import { hue } from '../shared/palette';

export type GradientAnalysis = GradientAnalysisRecord['analyses'][number];
type Bucket = GradientAnalysis['buckets'][number];

export interface GradientsView {
  element: HTMLElement;
  draw(record: GradientAnalysisRecord): void;
}

const partColours: Record<string, number> = { task: hue.blue, entropy: hue.orange, kl: hue.green };
const analysisNames: Record<string, string> = {
  grad_norm: 'after the filter',
  grad_norm_prefilter: 'before the filter',
};

export function gradientsView(): GradientsView {
  const element = h('div', { class: 'gradients' });
  let chosen = 'grad_norm';
  return {
    element,
    draw(record) {
      const draw = () => {
        const analysis = record.analyses.find(({ name }) => name === chosen) ?? record.analyses[0];
        const choices = record.analyses.map(({ name }) => {
          const choice = h('button', { class: 'choice', type: 'button' }, analysisNames[name] ?? name);
          setAttribute(choice, 'aria-pressed', String(name === analysis.name));
          choice.addEventListener('click', () => {
            chosen = name;
            draw();
          });
          return choice;
        });
        replaceChildren(
          element,
          h('p', { class: 'caption' }, gradientCaption(analysis)),
          choices.length > 1 && h('div', { class: 'choices', role: 'group', 'aria-label': 'Which batch' }, ...choices),
          h('div', { class: 'table-scroll', tabindex: 0 }, bucketTable(analysis)),
        );
      };
      draw();
    },
  };
}

/**
 * Interprets the norms: whether reward deviation carries signal, and what changes the policy where deviation is small.
 */
export function gradientCaption({ parts, buckets }: GradientAnalysis): string {
  const graded = buckets.filter(({ name }) => name !== 'all');
  const task = parts.indexOf('task');
  if (graded.length < 2 || task < 0) return 'Only one bucket: nothing to compare.';
  const norm = (bucket: Bucket, part: number) => bucket.gradients[part].norm;
  const [low, high] = [graded[0], graded[graded.length - 1]];
  const [least, most] = [norm(low, task), norm(high, task)];
  const numbers = `from ${formatNumber(least)} where scores differ least (${stdOf(low)}) to ${formatNumber(most)} where they differ most (${stdOf(high)})`;
  const { snr } = high.gradients[task];
  const noisy = snr !== null && snr <= 1;
  const rises =
    most > 1.5 * least
      ? `The task’s gradient rises ${numbers}: ${noisy ? 'reward deviation may carry signal' : 'reward deviation carries signal'}`
      : most < least / 1.5
        ? `The task’s gradient falls ${numbers}: reward deviation carries no signal here`
        : `The task’s gradient is about the same, ${numbers}: a filter by deviation cannot help much`;
  const others = parts.filter((_, p) => p !== task && norm(low, p) > norm(low, task));
  const alone =
    others.length > 0
      ? ` In the lowest bucket ${others.join(' and ')} outweigh${others.length === 1 ? 's' : ''} it: there the regularisers dominate the update.`
      : '';
  const noise = noisy
    ? ` Even in the highest bucket it cannot be distinguished from noise (signal-to-noise ratio ${formatNumber(snr)}).`
    : '';
  return `${rises}.${alone}${noise}`;
}

function stdOf({ groups }: Bucket): string {
  const stds = groups.map(({ reward_std }) => reward_std);
  const mean = stds.reduce((sum, std) => sum + std, 0) / stds.length;
  return `deviation ${formatNumber(mean)}`;
}

function bucketTable({ parts, buckets, cosines }: GradientAnalysis): HTMLElement {
  const most = maximum(
    buckets.flatMap(({ gradients }) => gradients.map(({ norm }) => norm)),
    1e-12,
  );
  const pairs = parts.flatMap((_, p) => parts.slice(p + 1).map((_, q) => [p, p + 1 + q] as const));
  const head = [
    h('th', { scope: 'col' }, 'Bucket'),
    h('th', { scope: 'col', title: 'Prompt groups and their samples' }, 'Groups'),
    h('th', { scope: 'col', title: 'Mean in-group reward deviation' }, 'Deviation'),
    ...parts.map(part =>
      h('th', { scope: 'col', class: 'part', title: `Norm of the ${part} part’s gradient over the bucket` }, part),
    ),
    ...parts.map(part =>
      h(
        'th',
        {
          scope: 'col',
          title: `Signal-to-noise ratio: squared norm of the mean gradient of ${part} over its variance; about 1 or less is noise`,
        },
        `SNR ${part}`,
      ),
    ),
    ...pairs.map(([p, q]) =>
      h(
        'th',
        {
          scope: 'col',
          title: 'Cosine of the angle between the two gradients: −1 opposite directions, 1 same direction',
        },
        `cos ${parts[p]}·${parts[q]}`,
      ),
    ),
  ];
  const rows = buckets.map((bucket, a) =>
    h(
      'tr',
      { class: bucket.name === 'all' ? 'all' : null },
      h('th', { scope: 'row' }, bucket.name.replace('_', ' ')),
      h('td', { class: 'number' }, `${bucket.groups.length} · ${bucket.samples}`),
      h('td', { class: 'number' }, stdOf(bucket).replace('deviation ', '')),
      ...bucket.gradients.map(({ norm }, p) =>
        h(
          'td',
          { class: 'part' },
          h('span', {
            class: 'bar',
            style: `--share:${Math.round((100 * norm) / most)}%;--bar:var(--c${partColours[parts[p]] ?? hue.grey})`,
          }),
          h('span', { class: 'number' }, formatNumber(norm)),
        ),
      ),
      ...bucket.gradients.map(({ snr }) => h('td', { class: 'number' }, formatNumber(snr ?? NaN))),
      ...pairs.map(([p, q]) =>
        h('td', { class: 'number' }, formatNumber(cosines[a * parts.length + p]?.[a * parts.length + q] ?? NaN)),
      ),
    ),
  );
  return h(
    'table',
    { class: 'bucket-table' },
    h('caption', { class: 'visually-hidden' }, 'Gradients by bucket'),
    h('thead', {}, h('tr', {}, ...head)),
    h('tbody', {}, ...rows),
  );
}
