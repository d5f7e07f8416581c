// A table of the results of each group of runs. The final and the best value of the selected metric are shown as mean ±
// 95 % interval over seeds. Further columns show the configuration keys that differ between groups, and the group's
// runs.
import { html, nothing, type TemplateResult } from 'lit';
import type { Estimate } from '../../extension/common/mean-estimate';
import { formatValue, type Unit } from '../shared/format';
import { displayStatus } from '../shared/run-status';
import type { Theme } from '../shared/theme';
import type { CompareActions } from './actions';
import type { ColouredGroup, Compared, ComparedMetric } from './compared-metrics';
import { outcomes, type RunCurve } from './group-curves';

/** Renders the table. `curves` has one curve of the metric per run; undefined until the curves have been received. */
export function compareTable(
  compared: Compared,
  metric: ComparedMetric,
  curves: readonly RunCurve[] | undefined,
  theme: Theme,
  actions: CompareActions,
): TemplateResult {
  const { keys } = compared.snapshot;
  const { title, unit } = metric;
  // The links stand beside the name, so that a narrow page shows them without scrolling.
  const heads = ['', 'runs', `${title}, final`, `${title}, best`, ...keys.map(shortName(keys))];
  const rows = compared.groups.map(group => {
    const { label, colour, members, values } = group;
    const { final, best } = outcomes(curves ? members.map(i => curves[i]) : []);
    const swatch = html`<span
      class="swatch"
      style="background:${theme.palette[colour % theme.palette.length]}"
    ></span>`;
    const number = (value: Estimate | null): TemplateResult => html`<td class="number">${shown(value, unit)}</td>`;
    const settings = values.map(value => html`<td class="setting" title=${value}>${value}</td>`);
    const links = [...runLinks(group, compared, actions), differenceLink(group, compared, actions)];
    return html`<tr
      ><th scope="row">${swatch}${label}${lineage(group, compared)}</th><td><span class="runs">${links}</span></td
      >${number(final)}${number(best)}${settings}</tr
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

/** Renders the links to the dashboards of a group's runs. */
function runLinks({ members }: ColouredGroup, { snapshot }: Compared, actions: CompareActions): TemplateResult[] {
  return members.map(i => {
    const { run, seed } = snapshot.runs[i];
    const status = displayStatus(run);
    const text = members.length > 1 ? `seed ${seed}` : 'dashboard';
    return html`<button
      class="plain link"
      type="button"
      title=${`${run.name}: ${status}, step ${run.status.step}`}
      @click=${() => actions.openDashboard(run.folder)}
      >${status === 'finished' ? text : `${text} (${status})`}</button
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

/** Formats an estimate as `61.2 % ± 4.0 %`; a dash if there is no value. */
function shown(value: Estimate | null, unit: Unit): string {
  if (value === null) return '–';
  const mean = formatValue(value.mean, unit);
  return value.interval === null ? mean : `${mean} ± ${formatValue(value.interval, unit)}`;
}

/** Returns the last part of a key if this part is unique among all keys, else the complete key. */
const shortName =
  (keys: readonly string[]) =>
  (key: string): string => {
    const last = (name: string): string => name.slice(name.lastIndexOf('.') + 1);
    return keys.filter(other => last(other) === last(key)).length > 1 ? key : last(key);
  };
