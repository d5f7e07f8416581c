// Shows the gradients of the loss terms. Prompt groups are sorted by score deviation and divided into buckets; each
// bucket has its own gradients. Bars show the norms. Numbers show the signal-to-noise ratio of each term's gradient,
// and the cosine between the gradients of each pair of terms. A sentence above the bars summarises the result.
import { html, nothing, type TemplateResult } from 'lit';
import { maximum } from '../../../extension/common/lists';
import type { GradientAnalysisRecord } from '../../../extension/run-data/diagnostics';
import { choices } from '../../components/toolbar';
import { formatNumber } from '../../shared/format';
import { hue } from '../../shared/run-colours';
import { gradientCaption, stdOf, type GradientAnalysis } from './gradient-caption';

const partColours: Record<string, number> = { task: hue.blue, entropy: hue.orange, kl: hue.green };
const analysisNames: Record<string, string> = {
  grad_norm: 'after the filter',
  grad_norm_prefilter: 'before the filter',
};

/**
 * Renders the gradients. `chosen` is the name of the analysis to show; a name that the record does not contain is
 * ignored.
 */
export function gradientsView(
  { analyses }: GradientAnalysisRecord,
  chosen: string,
  onChoose: (name: string) => void,
): TemplateResult {
  const analysis = analyses.find(({ name }) => name === chosen) ?? analyses[0];
  const alternatives = analyses.map(({ name }) => ({ value: name, label: analysisNames[name] ?? name }));
  return html`<div class="gradients">
    <p class="caption">${gradientCaption(analysis)}</p>
    ${alternatives.length > 1 ? choices('Which batch', alternatives, analysis.name, onChoose) : nothing}
    <div class="table-scroll" tabindex="0">${bucketTable(analysis)}</div>
  </div>`;
}

type Pair = readonly [p: number, q: number];

function bucketTable(analysis: GradientAnalysis): TemplateResult {
  const { parts, buckets } = analysis;
  const norms = buckets.flatMap(({ gradients }) => gradients.map(({ norm }) => norm));
  const most = maximum(norms, 1e-12);
  const pairs = parts.flatMap((_, p) => parts.slice(p + 1).map((_, q): Pair => [p, p + 1 + q]));
  return html`<table class="bucket-table">
    <caption class="visually-hidden"> Gradients by bucket </caption>
    <thead>
      <tr>
        <th scope="col">Bucket</th>
        <th scope="col" title="Number of prompt groups and of their samples">Groups</th>
        <th scope="col" title="Mean in-group reward deviation">Deviation</th>
        ${partHeads(parts, pairs)}
      </tr>
    </thead>
    <tbody> ${buckets.map((_, bucket) => bucketRow(analysis, bucket, pairs, most))} </tbody>
  </table>`;
}

function partHeads(parts: readonly string[], pairs: readonly Pair[]): TemplateResult[] {
  const snr = (part: string): string =>
    `Signal-to-noise ratio: squared norm of the mean gradient of ${part} over its variance; about 1 or less is noise`;
  const cosine = 'Cosine of the angle between the two gradients: −1 opposite directions, 1 same direction';
  return [
    ...parts.map(
      part =>
        html`<th scope="col" class="part" title="Norm of the gradient of the ${part} term over the bucket"
          >${part}</th
        >`,
    ),
    ...parts.map(part => html`<th scope="col" title=${snr(part)}>SNR ${part}</th>`),
    ...pairs.map(([p, q]) => html`<th scope="col" title=${cosine}>cos ${parts[p]}·${parts[q]}</th>`),
  ];
}

function bucketRow(
  { parts, buckets, cosines }: GradientAnalysis,
  index: number,
  pairs: readonly Pair[],
  most: number,
): TemplateResult {
  const bucket = buckets[index];
  const norms = bucket.gradients.map(({ norm }, p) => {
    const style = `--share:${Math.round((100 * norm) / most)}%;--bar:var(--c${partColours[parts[p]] ?? hue.grey})`;
    return html`<td class="part"
      ><span class="bar" style=${style}></span><span class="number">${formatNumber(norm)}</span></td
    >`;
  });
  const ratios = bucket.gradients.map(({ snr }) => html`<td class="number">${formatNumber(snr ?? NaN)}</td>`);
  const first = index * parts.length;
  const angles = pairs.map(
    ([p, q]) => html`<td class="number">${formatNumber(cosines[first + p]?.[first + q] ?? NaN)}</td>`,
  );
  return html`<tr class=${bucket.name === 'all' ? 'all' : nothing}
    ><th scope="row">${bucket.name.replace('_', ' ')}</th
    ><td class="number">${bucket.groups.length} · ${bucket.samples}</td
    ><td class="number">${formatNumber(stdOf(bucket))}</td>${norms}${ratios}${angles}</tr
  >`;
}
