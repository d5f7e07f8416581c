// The bar above the episode: the run with its status and progress, the tag to watch, and the page's commands.
import { html, nothing, type TemplateResult } from 'lit';
import type { RunSummary } from '../../extension/protocol/page-state';
import { progressOf } from '../../extension/run-data/run-progress';
import { button, dropdown } from '../components/controls';
import { statusDot } from '../components/status-dot';
import type { LiveActions } from './actions';
import type { LiveState } from './state';

export function topBar(run: RunSummary, { tags, settings }: LiveState, actions: LiveActions): TemplateResult {
  const { unit, done, of } = progressOf(run.status);
  const choice = dropdown({
    label: 'Environment tag to watch',
    choices: [['', 'All tags'], ...tags.map((name): [string, string] => [name, name])],
    value: tags.includes(settings.tag) ? settings.tag : '',
    onChange: actions.chooseTag,
  });
  return html`<header class="live-top">
    <h1>${run.name}</h1>
    ${statusDot(run)}
    <span class="muted">${unit} ${done} of ${of}</span>
    <span class="live-tools">
      <span class="choice">${tags.length > 1 ? choice : nothing}</span>
      ${button({
        label: 'Follow',
        title: 'Follow new tokens and switch to the next episode ( f )',
        primary: settings.follow,
        pressed: settings.follow,
        onClick: () => actions.follow(!settings.follow),
      })}
      ${button({
        label: 'Episodes',
        title: 'Open the stored episodes of the run ( e )',
        onClick: () => actions.command('episodes'),
      })}
    </span>
  </header>`;
}
