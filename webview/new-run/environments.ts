// The environments of a run by tag: number of prompt groups per step in training and in validation, which may use
// different environments. Other environments of the configuration can be added.
import type { GroupsByTag, PlannedRun } from '../../extension/protocol/new-run-page';
import { h, replaceChildren } from '../shared/dom';
import { dropdown, textField } from '../shared/toolkit';

type Groups = PlannedRun['groups'];
const sides = ['train', 'val'] as const;
const sideNames = { train: 'Training groups', val: 'Validation groups' } as const;

export class Environments {
  readonly element = h('section', { class: 'field-group', 'data-key': 'es_manager' });
  private shown = '';

  /** `onChange` receives all groups, or null for the preset's. */
  constructor(private readonly onChange: (groups: Groups | null) => void) {}

  show(tags: PlannedRun['tags'], groups: Groups, changed: boolean, problem: string | undefined): void {
    const now = JSON.stringify([tags, groups, changed, problem]);
    if (now === this.shown || this.typing(groups)) return;
    this.shown = now;
    const played = tags.filter(({ tag }) => sides.some(side => tag in groups[side]));
    const others = tags.filter(entry => !played.includes(entry));
    const reset = h('button', { class: 'plain link reset', type: 'button' }, 'preset’s');
    reset.addEventListener('click', () => this.onChange(null));
    const add = dropdown({
      label: 'Add an environment',
      choices: [
        ['', 'Add an environment …'] as const,
        ...others.map(({ tag, environment }) => [tag, `${tag} (${environment})`] as const),
      ],
      value: '',
      onChange: tag => tag !== '' && this.onChange(withGroups(groups, 'train', tag, 1)),
    });
    const rows = played.map(({ tag, environment }) =>
      h(
        'tr',
        {},
        h('th', { scope: 'row' }, tag, h('span', { class: 'muted' }, ` ${environment}`)),
        ...sides.map(side => h('td', {}, this.count(groups, side, tag))),
      ),
    );
    this.element.classList.toggle('changed', changed);
    replaceChildren(
      this.element,
      h('h2', {}, 'Environments'),
      h('p', { class: 'field-help muted' }, 'Prompt groups per step, by environment; 0 removes an environment.'),
      h(
        'table',
        { class: 'environments' },
        h(
          'thead',
          {},
          h(
            'tr',
            {},
            h('th', { scope: 'col' }, 'Environment'),
            ...sides.map(side => h('th', { scope: 'col' }, sideNames[side])),
          ),
        ),
        h('tbody', {}, ...rows),
      ),
      h('div', { class: 'field-control' }, others.length > 0 && add, changed && reset),
      problem !== undefined && h('p', { class: 'problem', role: 'alert' }, problem),
    );
  }

  private count(groups: Groups, side: (typeof sides)[number], tag: string): HTMLElement {
    return textField({
      label: `${sideNames[side]} of ${tag}`,
      value: String(groups[side][tag] ?? 0),
      class: 'number',
      onInput: text => /^\d+$/.test(text.trim()) && this.onChange(withGroups(groups, side, tag, Number(text))),
    });
  }

  /** Whether the user is editing a number and only numbers differ: rebuilding the inputs would lose the focus. */
  private typing(groups: Groups): boolean {
    const rows = [...this.element.querySelectorAll('tbody th')].map(th => th.firstChild?.textContent);
    const played = new Set(sides.flatMap(side => Object.keys(groups[side])));
    const active = document.activeElement;
    return (
      active?.localName === 'vscode-text-field' &&
      this.element.contains(active) &&
      rows.length === played.size &&
      rows.every(tag => played.has(tag ?? ''))
    );
  }
}

const withGroups = (groups: Groups, side: keyof Groups, tag: string, count: number): Groups => ({
  ...groups,
  [side]: { ...groups[side], [tag]: count } satisfies GroupsByTag,
});
