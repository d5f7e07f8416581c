// The row of episodes that are worth reading first: best, worst and most changed. A click opens the episode.
import { html, nothing, type TemplateResult } from 'lit';
import { successLabel } from '../../../extension/run-data/episode';
import type { PickedEpisode } from '../../../extension/run-data/picked-episodes';
import { formatNumber } from '../../shared/format';

const names: Record<PickedEpisode['kind'], string> = { best: 'Best', worst: 'Worst', changed: 'Most changed' };

export function pickedRow(
  picked: readonly PickedEpisode[],
  open: (id: string) => void,
): TemplateResult | typeof nothing {
  if (picked.length === 0) return nothing;
  return html`<section class="picked" aria-label="Episodes to read first">
    <h2>Episodes</h2>
    ${picked.map(
      each =>
        html`<button class="plain" type="button" title=${hint(each)} @click=${() => open(each.episode.id)}
          ><span class="muted">${names[each.kind]}</span> <strong>${score(each)}</strong>
          <span class="muted">step ${each.episode.step}</span></button
        >`,
    )}
  </section>`;
}

const score = ({ episode, change }: PickedEpisode): string =>
  change ? `${formatNumber(change.from)} → ${formatNumber(change.to)}` : formatNumber(episode.score);

function hint({ kind, episode, change }: PickedEpisode): string {
  const { id, tag, seed, turns, success } = episode;
  const what = change
    ? `Mean score of the prompt with seed ${seed} in the validations of step ${change.firstStep} and step ${episode.step}`
    : `${kind === 'best' ? 'Highest' : 'Lowest'} score of an episode; of equal scores, the newest`;
  const turned = `${turns} ${turns === 1 ? 'turn' : 'turns'}`;
  return `${what}\n${id} · ${tag} · ${turned} · ${successLabel(success)}\nClick to read and play the episode`;
}
