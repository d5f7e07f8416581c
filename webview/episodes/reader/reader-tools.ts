// The buttons above the open episode: the choice of `reading`, raw text, tokens, trace, and on a narrow page a button
// back to the list.
import { html, nothing, type TemplateResult } from 'lit';
import { button } from '../../components/controls';
import type { EpisodesActions } from '../actions';
import { hasPictures, readingsWithHeat } from '../heat/heat-state';
import type { EpisodesState, Shown } from '../state';
import type { Reading, Toggled } from '../episodes-settings';

const readings: readonly [Reading, string, string][] = [
  ['episode', 'Episode', 'The episode’s turns ( e )'],
  ['playback', 'Play', 'The episode turn by turn, exported as a GIF or a video ( p )'],
  ['group', 'Group', 'The episodes of the same prompt group side by side ( g )'],
  ['film', 'Film', 'The pictures of the prompt group as film strips ( f )'],
  ['training', 'Over training', 'The same prompt from step to step ( t )'],
];

export function readerTools({ shown, settings }: EpisodesState, actions: EpisodesActions): TemplateResult {
  const back = button({
    label: 'Episodes',
    icon: 'left',
    title: 'Back to the list (Escape)',
    onClick: actions.back,
  });
  return html`<div class="episode-tools">
    <span class="back">${back}</span>${shown?.kind === 'episode' ? openTools(shown, settings, actions) : nothing}
  </div>`;
}

function openTools(
  { episode, others }: Shown & { kind: 'episode' },
  { reading, raw, tokens, heat, large }: EpisodesState['settings'],
  actions: EpisodesActions,
): TemplateResult {
  const choices = readings.map(([to, label, title]) =>
    button({ label, title, pressed: reading === to, onClick: () => actions.readAs(to) }),
  );
  const toggle = (label: string, pressed: boolean, to: Toggled, title: string) =>
    button({ label, pressed, title, onClick: () => actions.toggle(to) });
  const rawText = toggle('Raw text', raw, 'raw', 'The complete text of the model ( r )');
  const byToken = toggle('Tokens', tokens, 'tokens', 'Sampled tokens by id, shaded by log-prob ( x )');
  const pictured = [episode, ...others].some(each => each !== null && hasPictures(each));
  const heatMap = toggle('Heat map', heat, 'heat', 'How much the answer depends on each part of a picture ( h )');
  const larger = toggle('Larger', large, 'large', 'Larger pictures ( z )');
  const trace = button({
    label: 'Open trace',
    title: 'Open as a document in the editor, token by token ( o )',
    onClick: actions.openTrace,
  });
  return html`<span class="readings" role="group" aria-label="View">${choices}</span>${rawText}${
      reading === 'episode' ? byToken : nothing
    }${pictured && readingsWithHeat.has(reading) ? [heatMap, larger] : nothing}${trace}`;
}
