// A table of the results of each group of runs. The final and the best value of the selected metric are shown as mean ±
// 95 % interval over seeds (from three seeds on), with the difference from the baseline. Further columns show the
// configuration keys that differ between groups, and the group's runs. Rows hide, recolour and choose the baseline.
import { html, nothing, type TemplateResult } from 'lit';
import { live } from 'lit/directives/live.js';
import { intervalSeeds, type Estimate } from '../../extension/common/mean-estimate';
import { swatchButton } from '../components/run-swatch';
import { formatChange, formatValue, type Unit } from '../shared/format';
import { displayStatus } from '../shared/run-status';
import type { CompareActions } from './actions';
import type { ColouredGroup, Compared, ComparedMetric } from './compared-metrics';
import { outcomes, type RunCurve } from '../../extension/run-data/charts/group-curves';
import type { CompareSettings } from './state';

type TableSettings = Pick<CompareSettings, 'hidden' | 'baseline'>;

/** Renders the table. `curves` has one curve of the metric per run; undefined until the curves have been received. */
export function compareTable(
  compared: Compared,
  metric: ComparedMetric,
  curves: readonly RunCurve[] | undefined,
  settings: TableSettings,
  actions: CompareActions,
): TemplateResult {
  const { keys } = compared.snapshot;
  const { title, unit } = metric;
  // The links stand beside the name, so that a narrow page shows them without scrolling.
  const heads = ['', 'runs', `${title}, final`, `${title}, best`, ...keys.map(shortName(keys))];
  const resultsOf = ({ members }: ColouredGroup): ReturnType<typeof outcomes> =>
    outcomes(curves ? members.map(i => curves[i]) : []);
  const base = compared.groups.find(({ id }) => id === settings.baseline);
  const baseResults = base && resultsOf(base);
  const rows = compared.groups.map(group => {
    const { final, best } = resultsOf(group);
    const isBase = group === base;
    const number = (value: Estimate | null, against: Estimate | null | undefined): TemplateResult =>
      html`<td class="number" title=${smallSample(value)}
        >${shown(value, unit)}${
          isBase || !value || !against
            ? nothing
            : html`<span class="muted difference" title="Difference from ${base!.label}"
                >${formatChange(value.mean - against.mean, unit)}</span
              >`
        }</td
      >`;
    const cells = group.values.map(value => html`<td class="setting" title=${value}>${value}</td>`);
    const isHidden = group.members.every(i => settings.hidden.includes(compared.snapshot.runs[i].run.id));
    return html`<tr class=${isHidden ? 'hidden-runs' : nothing}
      ><th scope="row">${groupHead(group, compared, settings, actions)}${lineage(group, compared)}</th
      ><td
        ><span class="runs"
          >${runLinks(group, compared, settings, actions)}<span class="row-actions"
            >${baselineButton(group, isBase, actions)}${differenceLink(group, compared, actions)}</span
          ></span
        ></td
      >${number(final, baseResults?.final)}${number(best, baseResults?.best)}${cells}</tr
    >`;
  });
  return html`<table class="compare-table">
    <caption class="visually-hidden">Results by configuration</caption>
    <thead>
      <tr>${heads.map((text, i) => html`<th scope="col" title=${keys[i - 4] ?? nothing}>${text}</th>`)}</tr>
    </thead>
    <tbody> ${rows} </tbody>
  </table>`;
}

/** Renders the run and the step from which a group's runs were forked. */
function lineage({ members }: ColouredGroup, { snapshot: { runs } }: Compared): TemplateResult | typeof nothing {
  const parents = members.flatMap(i => {
    const { parent } = runs[i].run;
    if (!parent) return [];
    const name = runs.find(({ run }) => run.id === parent.run)?.run.name ?? parent.run;
    return `fork of ${name}, step ${parent.step}`;
  });
  return parents.length === 0 ? nothing : html`<span class="lineage muted">${[...new Set(parents)].join('; ')}</span>`;
}

/** Renders the group's check box, colour and name. */
function groupHead(
  group: ColouredGroup,
  { snapshot: { runs } }: Compared,
  { hidden }: TableSettings,
  actions: CompareActions,
): TemplateResult {
  const { label, members } = group;
  const folders = members.map(i => runs[i].run.folder);
  const ids = members.map(i => runs[i].run.id);
  return html`<span class="group-head"
    >${runCheckbox(`Show ${label}`, ids, hidden, actions)}${swatchButton(runs[members[0]].run, label, colour => actions.recolour(folders, colour))}<span
      >${label}</span
    ></span
  >`;
}

/** Renders a check box that shows or hides runs; it is half-checked if only some of the runs are hidden. */
function runCheckbox(
  label: string,
  ids: readonly string[],
  hidden: readonly string[],
  actions: CompareActions,
): TemplateResult {
  const off = ids.filter(id => hidden.includes(id)).length;
  return html`<input
    type="checkbox"
    aria-label=${label}
    title=${label}
    .checked=${live(off < ids.length)}
    .indeterminate=${off > 0 && off < ids.length}
    @change=${({ target }: Event) => actions.hide(ids, !(target as HTMLInputElement).checked)}
  />`;
}

const baselineButton = ({ id, label }: ColouredGroup, isBase: boolean, actions: CompareActions): TemplateResult =>
  html`<button
    class="plain link"
    type="button"
    aria-pressed=${String(isBase)}
    title=${isBase ? 'Show values without differences' : `Show differences from ${label}`}
    @click=${() => actions.chooseBaseline(isBase ? null : id)}
    >baseline</button
  >`;

/** Renders the links to the dashboards of a group's runs; several runs can be hidden one by one. */
function runLinks(
  { members }: ColouredGroup,
  { snapshot }: Compared,
  { hidden }: TableSettings,
  actions: CompareActions,
): TemplateResult[] {
  return members.map(i => {
    const { run, seed } = snapshot.runs[i];
    const status = displayStatus(run);
    const text = members.length > 1 ? `seed ${seed}` : 'dashboard';
    return html`<span class="run"
      >${members.length > 1 ? runCheckbox(`Show ${run.name}`, [run.id], hidden, actions) : nothing}<button
        class="plain link"
        type="button"
        title=${`${run.name}: ${status}, step ${run.status.step}`}
        @click=${() => actions.openDashboard(run.folder)}
        >${status === 'finished' ? text : `${text} (${status})`}</button
      ></span
    >`;
  });
}

/** Renders a link to the difference between the configurations of the first group and another group. */
function differenceLink(
  group: ColouredGroup,
  { groups, snapshot: { runs } }: Compared,
  actions: CompareActions,
): TemplateResult | typeof nothing {
  const first = groups[0];
  if (group === first) return nothing;
  const folderOf = ({ members }: ColouredGroup): string => runs[members[0]].run.folder;
  return html`<button
    class="plain link"
    type="button"
    title=${`Difference of the configurations of ${first.label} and ${group.label}`}
    @click=${() => actions.openDifference([folderOf(first), folderOf(group)])}
    >difference</button
  >`;
}

/** Formats an estimate as `61.2 % ± 4.0 %`, without an interval below three seeds; a dash if there is no value. */
function shown(value: Estimate | null, unit: Unit): string {
  if (value === null) return '–';
  const mean = formatValue(value.mean, unit);
  return value.interval === null ? mean : `${mean} ± ${formatValue(value.interval, unit)}`;
}

const smallSample = (value: Estimate | null): string | typeof nothing =>
  value && value.n > 1 && value.n < intervalSeeds ? `Mean of ${value.n} seeds; an interval needs three` : nothing;

/** Returns the last part of a key if this part is unique among all keys, else the complete key. */
const shortName =
  (keys: readonly string[]) =>
  (key: string): string => {
    const last = (name: string): string => name.slice(name.lastIndexOf('.') + 1);
    return keys.filter(other => last(other) === last(key)).length > 1 ? key : last(key);
  };
