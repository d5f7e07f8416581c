// The sweep of the form: keys with several values, and seeds. A sweep starts one run for every combination.
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { Field, SweepChoice } from '../../extension/protocol/new-run-page';
import { button, dropdown, textField } from '../components/controls';

export const emptySweep: SweepChoice = { grid: [], seeds: '', jobs: '1' };

export interface SweepState {
  /** Null without a sweep. */
  sweep: SweepChoice | null;
  /** The fields of the form, whose keys the user can choose. */
  fields: readonly Field[];
  /** Number of runs of the sweep; null while it is not known. */
  runs: number | null;
  problem: string | undefined;
  onChange(sweep: SweepChoice | null): void;
}

const anotherKey = ' ';

export function sweepField({ sweep, fields, runs, problem, onChange }: SweepState): TemplateResult {
  const { grid, seeds, jobs } = sweep ?? emptySweep;
  const change = (part: Partial<SweepChoice>): void => onChange({ ...(sweep ?? emptySweep), ...part });
  const free = fields.filter(({ key }) => grid.every(row => row.key !== key));
  const add = dropdown({
    label: 'Add a key to the sweep',
    choices: [
      ['', 'Add a key …'] as const,
      ...free.map(({ key, title }) => [key, title] as const),
      [anotherKey, 'Another key …'] as const,
    ],
    value: '',
    onChange: key => key !== '' && change({ grid: [...grid, { key: key.trim(), values: '' }] }),
  });
  const titleOf = (key: string): string | undefined => fields.find(field => field.key === key)?.title;
  const put = (at: number, part: Partial<SweepChoice['grid'][number]>): void =>
    change({ grid: grid.map((row, i) => (i === at ? { ...row, ...part } : row)) });
  const rows = repeat(
    grid,
    (_, i) => i,
    ({ key, values }, i) =>
      html`<tr>
        <th scope="row"
          >${
            titleOf(key) ??
            textField({
              label: 'Configuration key',
              value: key,
              placeholder: 'key',
              onInput: text => put(i, { key: text }),
            })
          }</th
        >
        <td
          >${textField({
            label: `Values of ${titleOf(key) ?? (key || 'the key')}`,
            value: values,
            placeholder: 'values, separated by commas',
            onInput: text => put(i, { values: text }),
          })}</td
        >
        <td
          >${button({
            label: `Remove ${titleOf(key) ?? (key || 'the row')}`,
            icon: 'close',
            iconOnly: true,
            onClick: () => change({ grid: grid.filter((_, at) => at !== i) }),
          })}</td
        >
      </tr>`,
  );
  const count = runs === null ? nothing : html`<span class="muted">${runs} ${runs === 1 ? 'run' : 'runs'}</span>`;
  return html`<section class=${sweep ? 'field-group changed' : 'field-group'} data-key="sweep">
    <h2>Sweep</h2>
    <p class="field-help muted">One run for every combination of values, for each seed.</p>
    ${grid.length === 0 ? nothing : html`<table class="sweep"><tbody>${rows}</tbody></table>`}
    <div class="sweep-options">
      ${add}
      <label
        >Seeds
        ${textField({
          label: 'Seeds of the sweep',
          value: seeds,
          class: 'number',
          placeholder: '1',
          title: 'A number of seeds, such as 3, or the seeds, such as 0, 1, 2',
          onInput: text => change({ seeds: text }),
        })}</label
      >
      ${
        sweep
          ? html`<label
                >Runs at a time
                ${textField({
                  label: 'Runs of the sweep at a time',
                  value: jobs,
                  class: 'number',
                  onInput: text => change({ jobs: text }),
                })}</label
              >${count}<button class="plain link reset" type="button" @click=${() => onChange(null)}>No sweep</button>`
          : nothing
      }
    </div>
    ${problem === undefined ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
  </section>`;
}
