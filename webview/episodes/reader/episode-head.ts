// Identity and outcome of an episode, and the other members of its prompt group.
import { html, nothing, type TemplateResult } from 'lit';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import { hasTokens, successLabel, type Episode } from '../../../extension/run-data/episode';
import { formatNumber, formatSigned } from '../../shared/format';
import type { EpisodesActions } from '../actions';
import { successMark } from '../list/success-mark';

export function episodeHead(
  episode: Episode,
  members: readonly EpisodeRow[],
  actions: EpisodesActions,
): TemplateResult {
  const { id, tag, success } = episode;
  const facts = factsOf(episode).map(
    ([label, value, title]) => html`<div title=${title}><dt>${label}</dt><dd>${value}</dd></div>`,
  );
  return html`<header class="episode-head">
    <div class="episode-title">${successMark(success)}<h2>${id}</h2><span class="tag">${tag}</span></div>
    <dl class="facts">${facts}</dl>
    ${members.length > 1 ? membersView(members, id, actions) : nothing}
  </header>`;
}

/** Returns what the score is the sum of. */
export const scoreParts = ({
  reward,
  penalty,
  component_reward,
}: Pick<Episode, 'reward' | 'penalty' | 'component_reward'>): string =>
  [
    `Return ${formatSigned(reward)}`,
    `penalties ${formatSigned(penalty)}`,
    ...(component_reward === undefined ? [] : [`components ${formatSigned(component_reward)}`]),
  ].join(', ');

type Fact = [label: string, value: string, title: string];

function factsOf(episode: Episode): Fact[] {
  const { environment, seed, score, reward, advantage, kept, tokens } = episode;
  const sampled = tokens.mask.reduce<number>((total, bit) => total + bit, 0);
  const filter: Fact[] =
    kept === null
      ? []
      : [
          [
            'filter',
            kept ? 'kept' : 'dropped',
            kept
              ? 'The rollout filter kept this group for the update'
              : 'The rollout filter removed this group from the update',
          ],
        ];
  return [
    ['score', formatSigned(score), `${scoreParts(episode)}: the training reward, before normalisation`],
    ['return', formatSigned(reward), 'Sum of turn rewards, without penalties'],
    advantage === null
      ? ['advantage', '–', 'Not used for training']
      : ['advantage', formatSigned(advantage), 'Mean over the trained tokens'],
    environment.version === ''
      ? [
          'prompt',
          String(seed),
          'Number of the prompt: its seed or index if the trainer stores one, else a hash of its text',
        ]
      : ['seed', String(seed), 'Seed of the prompt group'],
    environment.version === ''
      ? ['environment', environment.name, 'Environment or data source, as the trainer names it']
      : [
          'environment',
          `${environment.name} ${environment.version.slice(0, 8)}`,
          `Version of the environment’s code: ${environment.version}`,
        ],
    hasTokens(episode)
      ? ['tokens', formatNumber(sampled), `${sampled} sampled of ${tokens.ids.length}`]
      : ['tokens', 'not stored', 'The trainer stored neither token ids nor log-probs'],
    ...filter,
  ];
}

function membersView(members: readonly EpisodeRow[], id: string, actions: EpisodesActions): TemplateResult {
  return html`<nav class="members" aria-label="Episodes of the same prompt group"
    >${members.map(row => memberButton(row, row.id === id, actions))}<span class="muted keys">j k</span></nav
  >`;
}

/** Renders a button that opens a group member. The button is filled if the episode succeeded. */
function memberButton(row: EpisodeRow, current: boolean, { open }: EpisodesActions): TemplateResult {
  const { member, success, reward, score } = row;
  const outcome = successLabel(success);
  const title = `member ${member}: ${outcome}, return ${formatSigned(reward ?? score)}, score ${formatSigned(score)}`;
  return html`<button
    class="plain member-button ${success ? 'success' : 'failure'}"
    type="button"
    title=${title}
    aria-label="member ${member}, ${outcome}"
    aria-current=${current ? 'true' : nothing}
    @click=${() => open(row)}
  ></button>`;
}
