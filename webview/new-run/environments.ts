// The environments of a run by tag, with the number of prompt groups per step in training and in validation. Training
// and validation may use different environments. The user can add further environments of the configuration.
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { GroupsByTag, PlannedRun } from '../../extension/protocol/new-run-page';
import { dropdown, textField } from '../components/controls';

type Groups = PlannedRun['groups'];
type Tag = PlannedRun['tags'][number];
const sides = ['train', 'val'] as const;
const sideNames = { train: 'Training groups', val: 'Validation groups' } as const;

export interface EnvironmentsState {
  /** All environments of the configuration. */
  tags: readonly Tag[];
  groups: Groups;
  /** Whether the groups differ from the preset. */
  changed: boolean;
  problem: string | undefined;
  /** Called with all groups, or with null to restore the preset. */
  onChange(groups: Groups | null): void;
}

export function environmentsView(state: EnvironmentsState): TemplateResult {
  const { tags, groups, changed, problem, onChange } = state;
  const played = tags.filter(({ tag }) => sides.some(side => tag in groups[side]));
  const others = tags.filter(entry => !played.includes(entry));
  const reset = html`<button class="plain link reset" type="button" @click=${() => onChange(null)}>Reset</button>`;
  const add = dropdown({
    label: 'Add an environment',
    choices: [
      ['', 'Add an environment …'] as const,
      ...others.map(({ tag, environment }) => [tag, `${tag} (${environment})`] as const),
    ],
    value: '',
    onChange: tag => tag !== '' && onChange(withGroups(groups, 'train', tag, 1)),
  });
  return html`<section class=${changed ? 'field-group changed' : 'field-group'} data-key="es_manager">
    <h2>Environments</h2>
    <p class="field-help muted">Prompt groups per step, by environment; 0 removes an environment.</p>
    <table class="environments">
      <thead>
        <tr>
          <th scope="col">Environment</th>
          ${sides.map(side => html`<th scope="col">${sideNames[side]}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${repeat(
          played,
          ({ tag }) => tag,
          entry => rowView(entry, state),
        )}
      </tbody>
    </table>
    <div class="field-control">${others.length > 0 ? add : nothing}${changed ? reset : nothing}</div>
    ${problem === undefined ? nothing : html`<p class="problem" role="alert">${problem}</p>`}
  </section>`;
}

function rowView({ tag, environment }: Tag, { groups, onChange }: EnvironmentsState): TemplateResult {
  const count = (side: (typeof sides)[number]): TemplateResult =>
    textField({
      label: `${sideNames[side]} of ${tag}`,
      value: String(groups[side][tag] ?? 0),
      class: 'number',
      onInput: text => /^\d+$/.test(text.trim()) && onChange(withGroups(groups, side, tag, Number(text))),
    });
  return html`<tr>
    <th scope="row">${tag}<span class="muted">${` ${environment}`}</span></th>
    ${sides.map(side => html`<td>${count(side)}</td>`)}
  </tr>`;
}

const withGroups = (groups: Groups, side: keyof Groups, tag: string, count: number): Groups => ({
  ...groups,
  [side]: { ...groups[side], [tag]: count } satisfies GroupsByTag,
});
