// The paired difference between two arms: choice of the arms, mean with its intervals and effect size, and the
// difference of each seed.
import { html, nothing, type TemplateResult } from 'lit';
import type { Interval } from '../../extension/common/paired-statistics';
import { dropdown } from '../components/controls';
import { formatChange, formatNumber, formatSigned, formatValue, type Unit } from '../shared/format';
import type { SweepPageActions } from './actions';
import type { Arm, ArmDifference } from './arms';

export function differenceView(
  arms: readonly Arm[],
  difference: ArmDifference,
  unit: Unit,
  actions: SweepPageActions,
): TemplateResult {
  const { base, other, pairs } = difference;
  const choice = (label: string, chosen: Arm, rest: Arm, onChange: (name: string) => void): TemplateResult =>
    dropdown({
      label,
      choices: arms.filter(arm => arm !== rest).map((arm): [string, string] => [arm.label, arm.label]),
      value: chosen.label,
      onChange,
    });
  return html`<section class="difference" aria-label="Paired difference">
    <h2>Difference between two arms</h2>
    <div class="difference-arms">
      ${choice('Arm', other, base, name => actions.choose({ other: name, base: base.label }))}
      <span class="muted">minus</span>
      ${choice('Base arm', base, other, name => actions.choose({ base: name, other: other.label }))}
    </div>
    ${summary(difference, unit)} ${pairs.length > 0 ? pairTable(difference, unit) : nothing}
  </section>`;
}

function summary({ paired }: ArmDifference, unit: Unit): TemplateResult {
  if (!paired) return html`<p class="muted">No seed has a value in both arms yet.</p>`;
  const { n, mean, student, bootstrap, effectSize } = paired;
  const range = ({ low, high }: Interval): string => `${formatChange(low, unit)} … ${formatChange(high, unit)}`;
  if (!student || !bootstrap)
    return html`<p
      ><strong>${formatChange(mean, unit)}</strong>
      <span class="muted">an interval needs three pairs; there are ${n}</span></p
    >`;
  const facts: [term: string, value: string, title: string][] = [
    ['mean', formatChange(mean, unit), 'Mean of the differences by seed'],
    ['95 % interval', range(student), `Student’s t over ${n} pairs`],
    ['bootstrap', range(bootstrap), `Percentiles of 10,000 resamples; too narrow for few pairs`],
    [
      'effect size',
      effectSize === null ? '–' : formatSigned(effectSize),
      'Cohen’s d_z: mean of the differences ÷ their standard deviation. 0.2 is small, 0.8 is large',
    ],
    ['pairs', formatNumber(n), 'Seeds with a value in both arms'],
  ];
  return html`<dl class="difference-facts">
    ${facts.map(([term, value, title]) => html`<div title=${title}><dt>${term}</dt><dd>${value}</dd></div>`)}
  </dl>`;
}

function pairTable({ base, other, pairs }: ArmDifference, unit: Unit): TemplateResult {
  return html`<div class="grid-scroll" tabindex="0" role="region" aria-label="Differences by seed"
    ><table class="pair-table">
      <caption class="visually-hidden">Differences by seed</caption>
      <thead>
        <tr
          ><th scope="col">seed</th><th scope="col">${other.label}</th><th scope="col">${base.label}</th
          ><th scope="col">difference</th></tr
        >
      </thead>
      <tbody>
        ${pairs.map(
          pair =>
            html`<tr
              ><th scope="row">${pair.seed}</th><td class="number">${formatValue(pair.other, unit)}</td
              ><td class="number">${formatValue(pair.base, unit)}</td
              ><td class="number">${formatChange(pair.other - pair.base, unit)}</td></tr
            >`,
        )}
      </tbody>
    </table></div
  >`;
}
