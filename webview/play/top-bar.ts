// The bar above the board: the environment with the version of its code, the seed, and the commands of the session.
import { html, type TemplateResult } from 'lit';
import type { PlaySession } from '../../extension/protocol/environment-tools';
import { button, textField, type ButtonOptions } from '../components/controls';
import type { PlayActions } from './actions';
import { restartWith } from './requests';
import type { PlayState } from './state';

export function topBar(session: PlaySession, { seed, stale }: PlayState, actions: PlayActions): TemplateResult {
  const { environment, version, has_solver, steps, over } = session;
  const tool = (label: string, keys: string, hint: string, key: string, more: Partial<ButtonOptions>): TemplateResult =>
    button({ label, title: `${hint} ( ${keys} )`, onClick: () => actions.press(key), ...more });
  const unplayed = steps.length === 0 && 'soft';
  const seedField = textField({
    label: 'Seed',
    class: 'seed',
    title: 'Seed of the episode; press Enter to start it',
    value: seed ?? String(session.seed),
    onInput: actions.typeSeed,
    onEnter: text => actions.ask(restartWith(text)),
  });
  return html`<header class="play-top">
    <h1>${environment}</h1>
    <span class="muted version" title="Version: the hash of the environment’s code">${version.slice(0, 8)}</span>
    <label class="seed-label"><span class="muted">seed</span>${seedField}</label>
    <span class="tools">
      ${tool('New seed', 'n', 'Start an episode with another seed', 'n', { primary: over })}
      ${tool('Restart', 'r', 'Restart this episode', 'r', { disabled: unplayed })}
      ${tool('Undo', 'u', 'Undo the last action', 'u', { disabled: unplayed })}
      ${tool('Hint', 'h', 'Show what the solver would do', 'h', { disabled: over && 'soft', hidden: !has_solver })}
      ${tool('Solve', 'Shift+S', 'Let the solver play to the end', 'S', {
        disabled: over && 'soft',
        hidden: !has_solver,
      })}
    </span>
    <span class="tools tools-end">
      ${tool('Reload', 'l', 'Rebuild the environment and replay this episode', 'l', { primary: stale !== null })}
      ${button({ label: 'Source', title: 'Open the environment’s file', onClick: () => actions.openSource() })}
      ${button({ label: 'Check', title: 'Run the checks of the environment contract', onClick: actions.check })}
    </span>
  </header>`;
}
