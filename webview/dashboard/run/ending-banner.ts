// The banner on the dashboard of a run that has ended: its results, its cost, and what to do next.
import { html, nothing, type TemplateResult } from 'lit';
import { endingFacts, type RunEnding } from '../../../extension/run-data/run-ending';
import { button } from '../../components/controls';
import { formatDuration, formatNumber, formatPercent } from '../../shared/format';
import type { DashboardCommand } from '../actions';

const formats = { percent: formatPercent, duration: formatDuration, short: formatNumber };

const titles: Record<RunEnding['state'], string> = {
  finished: 'The run has finished',
  stopped: 'The run was stopped',
  failed: 'The run failed',
};

/** Renders the banner. `isAttached`: whether the run belongs to another trainer. `close` hides it. */
export function endingBanner(
  ending: RunEnding,
  isAttached: boolean,
  send: (command: DashboardCommand) => void,
  close: () => void,
): TemplateResult {
  const facts = endingFacts(ending, formats).map(
    ([label, value]) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`,
  );
  const next = (label: string, command: DashboardCommand, title: string): TemplateResult =>
    button({ label, title, onClick: () => send(command) });
  return html`<section class="ending" aria-label="End of the run">
    <h2>${titles[ending.state]}</h2>
    <dl class="facts">${facts}</dl>
    <div class="buttons">
      ${next('Compare', 'compare', 'Compare this run with other runs')}
      ${
        ending.unit === 'episode' || isAttached
          ? nothing
          : html`${next('Evaluate', 'evaluate', 'Play the validation episodes with the newest checkpoint')}
            ${next('Fork', 'fork', 'Start a new run from a checkpoint of this run')}`
      }
      ${next('Export', 'export', 'Write metrics, episodes, configuration or model to a folder')}
      ${button({ label: 'Close', icon: 'close', iconOnly: true, title: 'Hide this banner', onClick: close })}
    </div>
  </section>`;
}
