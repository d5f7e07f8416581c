// The possible actions as buttons with their keys, or a field for an answer if actions have no names. Buttons use
// `aria-disabled`, because a focused element with `disabled` swallows all keys, including the editor's shortcuts.
import { html, nothing, type TemplateResult } from 'lit';
import { repeat } from 'lit/directives/repeat.js';
import type { PlaySession } from '../../extension/protocol/environment-tools';
import { button, textField } from '../components/controls';
import { keyName } from '../shared/keyboard';
import { actionKeys, type NamedAction } from './action-keys';
import type { PlayActions } from './actions';
import { action } from './requests';

export function actionBar(session: PlaySession, answer: string, actions: PlayActions): unknown {
  if (session.actions.length === 0) return answerField(session, answer, actions);
  const keys = actionKeys(session.actions);
  return repeat(
    session.actions,
    ({ id }) => id,
    named => actionButton(named, keys.get(named.id)!.map(keyName), session, actions),
  );
}

function actionButton(
  { id, name }: NamedAction,
  keys: readonly string[],
  session: PlaySession,
  { ask }: PlayActions,
): TemplateResult {
  const title = `${name} (${id})${keys.length > 0 ? `: ${keys.join(', ')}` : ''}`;
  return html`<button
    class="action"
    type="button"
    title=${title}
    aria-disabled=${session.over ? 'true' : nothing}
    @click=${() => ask(action(id, session))}
    >${keys.length > 0 ? html`<kbd aria-hidden="true">${keys[0]}</kbd>` : nothing}${name}</button
  >`;
}

function answerField(session: PlaySession, answer: string, { ask, typeAnswer }: PlayActions): TemplateResult {
  const give = (text: string): void => ask(action(text, session));
  return html`${textField({
    label: 'Your answer',
    placeholder: 'Type an answer, then press Enter',
    class: 'answer',
    value: answer,
    readonly: session.over,
    onInput: typeAnswer,
    onEnter: give,
  })}${button({ label: 'Answer', primary: true, disabled: session.over && 'soft', onClick: () => give(answer) })}`;
}
