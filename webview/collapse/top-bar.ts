// The bar above the diagnoses: the run with its status, the choice of the family (which pairs of prompt and reasoning
// are diagnosed), links to the other pages, and the scrubber.
import { html, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import { button } from '../components/controls';
import { choices, runTitle } from '../components/toolbar';
import type { CollapseActions } from './actions';
import { families, type FamilyName } from '../../extension/run-data/interpretation/run-series';
import { scrubber } from './scrubber';
import type { CollapseState, Position } from './state';

const alternatives = families.map(({ name, label, title }): { value: FamilyName; label: string; title: string } => ({
  value: name,
  label,
  title,
}));

export function topBar(
  run: RunSummary,
  state: CollapseState,
  position: Position,
  actions: CollapseActions,
): TemplateResult {
  return html`<header class="collapse-bar">
    <div class="bar-row">
      ${runTitle(run, run.id)}
      ${choices('Pairs of prompt and reasoning', alternatives, state.settings.family, actions.chooseFamily)}
      <div class="buttons">
        ${button({ label: 'Dashboard', onClick: () => actions.command('dashboard') })}
        ${button({ label: 'Episodes', onClick: () => actions.command('episodes') })}
      </div>
    </div>
    ${scrubber(state, position, actions)}
  </header>`;
}
