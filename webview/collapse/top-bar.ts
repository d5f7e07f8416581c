// The bar above the diagnoses: the run with its status, the choice of the family (which pairs of prompt and reasoning
// are diagnosed), links to the other pages, and the scrubber.
import { html, nothing, type TemplateResult } from 'lit';
import { button } from '../components/controls';
import { choices, runTitle } from '../components/toolbar';
import type { CollapseActions } from './actions';
import { families, type FamilyName } from '../../extension/run-data/interpretation/run-series';
import { scrubber } from './scrubber';
import type { CollapseState, Position, RunFacts } from './state';
import { diagnoseButton } from './switched-off';

const alternatives = families.map(({ name, label, title }): { value: FamilyName; label: string; title: string } => ({
  value: name,
  label,
  title,
}));

const scorerHelp =
  'The stored texts were scored under this model, which need not be the policy that wrote them. Compare the course over training, not single values with other runs.';

export function topBar(
  { run, scoredBy }: RunFacts,
  state: CollapseState,
  position: Position,
  actions: CollapseActions,
): TemplateResult {
  return html`<header class="collapse-bar">
    <div class="bar-row">
      ${runTitle(run, run.id)}
      ${choices('Pairs of prompt and reasoning', alternatives, state.settings.family, actions.chooseFamily)}
      ${scoredBy === null ? nothing : html`<span class="muted scorer" title=${scorerHelp}>scored by ${scoredBy}</span>`}
      <div class="buttons">
        ${run.trainer ? diagnoseButton(actions.command) : nothing}
        ${button({ label: 'Dashboard', onClick: () => actions.command('dashboard') })}
        ${button({ label: 'Episodes', onClick: () => actions.command('episodes') })}
      </div>
    </div>
    ${scrubber(state, position, actions)}
  </header>`;
}
