// Identity and outcome of an episode, and the other members of its prompt group.
import { html, nothing, type TemplateResult } from 'lit';
import type { EpisodeRow } from '../../../extension/run-data/episode-table';
import { hasTokens, successLabel, type Episode } from '../../../extension/run-data/episode';
import { counted, formatNumber, formatSigned } from '../../shared/format';
import type { EpisodesActions } from '../actions';
import { earnedText } from '../list/list-rows';
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
  const { environment, seed, kept, tokens } = episode;
  const sampled = tokens.mask.reduce<number>((total, bit) => total + bit, 0);
  const filter: Fact[] =
    kept === null
      ? []
      : [
          [
            'filter',
            kept ? 'kept' : 'dropped',
            kept
              ? 'All filters kept this episode for the update'
              : 'A filter removed this episode or its group from the update',
          ],
        ];
  return [
    ...earnedFacts(episode),
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

/** Returns score, return and advantage of the episode or, with roles, of each role. */
function earnedFacts(episode: Episode): Fact[] {
  const { score, reward, advantage, roles } = episode;
  const advantageFact = (of: string, value: number | null): Fact =>
    value === null
      ? [`advantage${of}`, '–', 'Not used for training']
      : [`advantage${of}`, formatSigned(value), 'Mean over the trained tokens'];
  if (!roles)
    return [
      ['score', formatSigned(score), `${scoreParts(episode)}: the training reward, before normalisation`],
      ['return', formatSigned(reward), 'Sum of turn rewards, without penalties'],
      advantageFact('', advantage),
    ];
  return Object.entries(roles).flatMap(([role, own]): Fact[] => [
    [
      `score of ${role}`,
      `${formatSigned(own.score)} ${own.success ? '✓' : '✗'}`,
      `${successLabel(own.success)}, ${counted(own.turns, 'turn')}, return ${formatSigned(own.reward)}, penalties ${formatSigned(own.penalty)}: the training reward of the role, before normalisation`,
    ],
    advantageFact(` of ${role}`, roleAdvantage(episode, role)),
  ]);
}

/** Returns the mean advantage over the trained tokens of a role's turns; null if none was trained. */
function roleAdvantage({ turns, tokens, advantage }: Episode, role: string): number | null {
  if (advantage === null || !tokens.advantages) return null;
  const spans = turns.filter(turn => turn.role === role).map(({ span }) => span);
  const values = spans.flatMap(([from, to]) =>
    tokens.advantages!.slice(from, to).filter((_, i) => tokens.mask[from + i] === 1),
  );
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function membersView(members: readonly EpisodeRow[], id: string, actions: EpisodesActions): TemplateResult {
  return html`<nav class="members" aria-label="Episodes of the same prompt group"
    >${members.map(row => memberButton(row, row.id === id, actions))}<span class="muted keys">j k</span></nav
  >`;
}

/** Renders a button that opens a group member. The button is filled if the episode succeeded. */
function memberButton(row: EpisodeRow, current: boolean, { open }: EpisodesActions): TemplateResult {
  const { member, success } = row;
  const outcome = successLabel(success);
  const title = `member ${member}: ${outcome}, ${earnedText(row, 'reward')}, ${earnedText(row, 'score')}`;
  return html`<button
    class="plain member-button ${success ? 'success' : 'failure'}"
    type="button"
    title=${title}
    aria-label="member ${member}, ${outcome}"
    aria-current=${current ? 'true' : nothing}
    @click=${() => open(row)}
  ></button>`;
}
