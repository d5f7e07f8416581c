// One episode as a column of turns, under a header with its identity and outcome.
import { maximum } from '../../extension/common/lists';
import type { EpisodeRow } from '../../extension/run-data/episode-table';
import type { Episode } from '../../extension/run-data/episode';
import { h } from '../shared/dom';
import { counted, formatNumber, formatSigned } from '../shared/format';
import { mark } from './list-rows';
import { stateView, turnView, type TurnOptions } from './turn-view';

export interface EpisodeViewOptions extends TurnOptions {
  /** All episodes of the prompt group, including this one. */
  members: readonly EpisodeRow[];
  openMember(row: EpisodeRow): void;
}

export function episodeView(episode: Episode, options: EpisodeViewOptions): HTMLElement {
  const { turns } = episode;
  const largest = maximum(
    turns.map(turn => Math.abs(turn.reward)),
    0,
  );
  let running = 0;
  const sections = turns.map((turn, i) => {
    running += turn.reward;
    return turnView(episode, i, running, largest, options);
  });
  return h(
    'article',
    { class: 'episode', 'aria-label': `Episode ${episode.id}` },
    episodeHead(episode, options),
    episode.error !== undefined && h('p', { class: 'episode-error', role: 'alert' }, episode.error),
    episode.context_reason !== undefined && h('p', { class: 'episode-error', role: 'alert' }, episode.context_reason),
    promptView(episode),
    ...sections,
    h(
      'section',
      { class: 'turn final', 'aria-label': 'Final state' },
      h('header', { class: 'turn-head' }, h('h3', {}, 'End'), h('span', { class: 'muted' }, ending(episode))),
      h('div', { class: 'turn-state' }, stateView(episode.final_state, turns.at(-1)?.state ?? null, episode, options)),
    ),
  );
}

/** One sentence about how the episode ended. */
export function ending({
  success,
  terminated,
  truncated,
  turns,
}: Pick<Episode, 'success' | 'terminated' | 'truncated' | 'turns'>): string {
  if (success) return 'The task was solved.';
  if (truncated) return 'Terminated without success, or out of actions.';
  if (terminated) return 'The environment ended the episode.';
  return `Reached the turn limit after ${counted(turns.length, 'turn')}.`;
}

function episodeHead(episode: Episode, { members, openMember }: EpisodeViewOptions): HTMLElement {
  const { id, tag, environment, seed, score, reward, penalty, advantage, kept, success, tokens } = episode;
  const sampled = tokens.mask.reduce<number>((total, bit) => total + bit, 0);
  const facts: [string, string, string][] = [
    [
      'score',
      formatSigned(score),
      `Return ${formatSigned(reward)} and penalties ${formatSigned(penalty)}: the training reward, before normalisation`,
    ],
    ['return', formatSigned(reward), 'Sum of turn rewards, without penalties'],
    [
      'advantage',
      advantage === null ? '–' : formatSigned(advantage),
      advantage === null ? 'Not trained on' : 'Mean over the trained tokens',
    ],
    ['seed', String(seed), 'Seed of the prompt group'],
    [
      'environment',
      `${environment.name} ${environment.version.slice(0, 8)}`,
      `Version of the environment’s code: ${environment.version}`,
    ],
    ['tokens', formatNumber(sampled), `${sampled} sampled of ${tokens.ids.length}`],
  ];
  if (kept !== null)
    facts.push([
      'filter',
      kept ? 'kept' : 'dropped',
      kept ? 'Trained on' : 'The rollout filter left this group out of the update',
    ]);
  const strip = members.map(row => memberButton(row, row.id === id, () => openMember(row)));
  return h(
    'header',
    { class: 'episode-head' },
    h('div', { class: 'episode-title' }, mark(success), h('h2', {}, id), h('span', { class: 'tag' }, tag)),
    h(
      'dl',
      { class: 'facts' },
      ...facts.map(([label, value, title]) => h('div', { title }, h('dt', {}, label), h('dd', {}, value))),
    ),
    members.length > 1 &&
      h(
        'nav',
        { class: 'members', 'aria-label': 'Episodes of the same prompt group' },
        ...strip,
        h('span', { class: 'muted keys' }, 'j k'),
      ),
  );
}

/** Button of a group member; filled if it succeeded. */
function memberButton(row: EpisodeRow, current: boolean, open: () => void): HTMLElement {
  const outcome = row.success ? 'success' : 'no success';
  const button = h('button', {
    class: `plain member-button ${row.success ? 'success' : 'failure'}`,
    type: 'button',
    title: `member ${row.member}: ${outcome}, return ${formatSigned(row.reward ?? row.score)}, score ${formatSigned(row.score)}`,
    'aria-label': `member ${row.member}, ${outcome}`,
    'aria-current': current ? 'true' : null,
  });
  button.addEventListener('click', open);
  return button;
}

/** The messages before the first response, collapsed: system message and first user message. */
function promptView({ messages }: Episode): HTMLElement | null {
  const answer = messages.findIndex(message => message.role === 'assistant');
  const prompt = answer < 0 ? messages : messages.slice(0, answer);
  if (prompt.length === 0) return null;
  return h(
    'details',
    { class: 'prompt' },
    h('summary', {}, 'Prompt of the first turn'),
    ...prompt.flatMap(({ role, content }) => [h('h4', { class: 'muted' }, role), h('pre', { class: 'raw' }, content)]),
  );
}
