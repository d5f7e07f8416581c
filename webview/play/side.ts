// The column next to the board: the task, the meaning of the symbols, how reloaded code behaves differently, and the
// steps so far.
import type { PlayDifference, PlaySession } from '../../extension/protocol/environment-tools';
import { h, type Child } from '../shared/dom';
import { formatSigned } from '../shared/format';

export interface SideActions {
  /** Shows the state after a step; 0 is the initial state. */
  view(step: number): void;
}

export function sideView(session: PlaySession, viewed: number, actions: SideActions): Child[] {
  return [
    session.reloaded && differencesView(session.reloaded.differences, session),
    stepsView(session, viewed, actions),
    session.instruction !== '' && section('Instruction', h('p', { class: 'instruction' }, session.instruction)),
    Object.keys(session.legend).length > 0 && section('Legend', legendView(session.legend)),
    section('Configuration', configView(session.config)),
  ];
}

function section(title: string, ...children: Child[]): HTMLElement {
  return h('section', { class: 'side-section' }, h('h2', {}, title), ...children);
}

function stepsView({ steps, seed }: PlaySession, viewed: number, { view }: SideActions): HTMLElement {
  const row = (index: number, name: string, reward: Child, end: Child) => {
    const button = h(
      'button',
      { class: 'plain step-row', type: 'button', 'aria-current': index === viewed ? 'step' : null },
      h('span', { class: 'muted' }, String(index)),
      h('span', { class: 'step-name' }, name),
      end,
      reward,
    );
    button.addEventListener('click', () => view(index));
    return h('li', {}, button);
  };
  const rows = steps.map(({ name, reward, terminated, truncated, info }, i) => {
    const refused =
      info['action_is_valid'] === false ? 'invalid' : info['action_is_effective'] === false ? 'no effect' : null;
    const end = terminated ? 'terminated' : truncated ? 'truncated' : refused;
    return row(
      i + 1,
      name === '' ? '(empty)' : name,
      h(
        'span',
        { class: reward < 0 ? 'reward loss' : reward > 0 ? 'reward gain' : 'reward muted' },
        formatSigned(reward),
      ),
      h('span', { class: 'muted step-end' }, end),
    );
  });
  return section(
    `Steps${steps.length > 0 ? ` (${steps.length})` : ''}`,
    h('ol', { class: 'steps' }, row(0, `seed ${seed}`, null, null), ...rows),
  );
}

function legendView(legend: PlaySession['legend']): HTMLElement {
  const rows = Object.entries(legend).flatMap(([symbol, meaning]) => [h('dt', {}, symbol), h('dd', {}, meaning)]);
  return h('dl', { class: 'legend' }, ...rows);
}

function configView(config: PlaySession['config']): HTMLElement {
  const rows = Object.entries(config).flatMap(([key, value]) => [
    h('dt', {}, key),
    h('dd', {}, typeof value === 'string' ? value : JSON.stringify(value)),
  ]);
  return h(
    'details',
    {},
    h('summary', {}, `${Object.keys(config).length} keys of env_config`),
    h('dl', { class: 'config' }, ...rows),
  );
}

/** Maximum number of differences listed; the rest are counted. */
const shownDifferences = 6;

function differencesView(differences: readonly PlayDifference[], { steps }: PlaySession): HTMLElement {
  if (differences.length === 0)
    return section(
      'Reloaded',
      h(
        'p',
        { class: 'muted' },
        steps.length === 0
          ? 'The new code gives the same initial state for this seed.'
          : 'The new code gives the same results for this seed and these actions.',
      ),
    );
  const rows = differences
    .slice(0, shownDifferences)
    .map(({ step, what, before, after }) =>
      h(
        'li',
        {},
        h('span', { class: 'muted' }, `${step === 0 ? 'beginning' : `step ${step}`} · ${what}`),
        h('div', { class: 'difference' }, h('pre', { class: 'before' }, before), h('pre', { class: 'after' }, after)),
      ),
    );
  const rest = differences.length - shownDifferences;
  return section(
    'Reloaded: differences of the new code',
    h('ul', { class: 'differences' }, ...rows),
    rest > 0 && h('p', { class: 'muted' }, `and ${rest} more`),
  );
}
