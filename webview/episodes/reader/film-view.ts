// The pictures of a prompt group as film strips: one strip for each member, one frame for each picture of a state, with
// the number of its turn. Arrow keys move between frames and strips; Enter opens the episode at the frame's turn.
import { html, nothing, type TemplateResult } from 'lit';
import { successLabel, type Episode } from '../../../extension/run-data/episode';
import { notice } from '../../components/notice';
import type { HeatMap } from '../../../extension/protocol/heat-maps';
import { describeStrongest } from '../../components/heat-picture';
import '../../components/lazy-picture';
import { scoreText } from '../../components/role-returns';
import type { EpisodesActions } from '../actions';
import { successMark } from '../list/success-mark';
import { heatPicture } from '../heat/heat-view';
import type { Subject } from './reader-subject';
import type { TurnOptions } from './turn-options';

/** A picture of a state. `turn` is the turn before which the state was shown; null for the final state. */
export interface FilmFrame {
  readonly turn: number | null;
  /** A data URL; null for a missing picture. */
  readonly picture: string | null;
  /** Its index among the pictures of its state. */
  readonly index: number;
  readonly label: string;
}

/** Returns the frames of an episode: the pictures of all turns, and those of the final state. */
export function filmFrames({ turns, final_pictures = [] }: Pick<Episode, 'turns' | 'final_pictures'>): FilmFrame[] {
  const framesOf = (pictures: readonly (string | null)[], turn: number | null): FilmFrame[] =>
    pictures.map((picture, i) => {
      const place = turn === null ? 'end' : `turn ${turn}`;
      return {
        turn,
        picture,
        index: i,
        label: pictures.length > 1 ? `${place}, ${i + 1} of ${pictures.length}` : place,
      };
    });
  return [...turns.flatMap(({ turn, pictures = [] }) => framesOf(pictures, turn)), ...framesOf(final_pictures, null)];
}

/** Renders the strips of a group. `episodes[i]` is the episode of `members[i]`, null if it no longer exists. */
export function filmView(
  { row: current, members }: Subject,
  episodes: readonly (Episode | null)[],
  options: TurnOptions,
  bar: TemplateResult | typeof nothing,
  actions: EpisodesActions,
): TemplateResult {
  const { group_id, step, mode, tag, id } = current;
  const title = `Group ${group_id} · ${mode === 'val' ? 'validation' : 'step'} ${step}`;
  const strips = episodes.flatMap((episode, i) => {
    const frames = episode ? filmFrames(episode) : [];
    return episode && frames.length > 0
      ? [strip(episode, `member ${members[i].member}`, members[i].id === id, frames, options, actions)]
      : [];
  });
  const without = episodes.length - strips.length;
  const facts = without > 0 && strips.length > 0 ? `${without} of ${episodes.length} episodes have no pictures` : '';
  const empty = (): TemplateResult =>
    notice({
      kind: 'empty',
      title: 'No pictures',
      text: 'The environment of these episodes returned no pictures. The key p plays an episode as boards or text.',
    });
  return html`<article class="film" aria-label=${`${title}: pictures`} @keydown=${moveFocus}>
    <header class="episode-head">
      <div class="episode-title"><h2>${title}</h2><span class="tag">${tag}</span></div>
      ${facts === '' ? nothing : html`<p class="muted">${facts}</p>`}
    </header>
    ${bar} ${strips.length > 0 ? strips : empty()}
  </article>`;
}

function strip(
  episode: Episode,
  title: string,
  isCurrent: boolean,
  frames: readonly FilmFrame[],
  options: TurnOptions,
  { openId, openTurn }: EpisodesActions,
): TemplateResult {
  const { id, success } = episode;
  const outcome = successLabel(success);
  const open = (turn: number | null): void => (turn === null ? openId(id) : openTurn(id, turn));
  return html`<section class=${isCurrent ? 'film-strip current' : 'film-strip'} aria-label="${title}, ${outcome}">
    <span title="${id}: ${outcome}">${successMark(success)} ${title}</span>
    <span class="muted">${scoreText(episode)}</span>
    <div class="film-frames" role="group" aria-label="Pictures of ${title}">
      ${frames.map(
        (frame, i) =>
          html`<button
            type="button"
            class="plain film-frame"
            tabindex=${i === 0 ? 0 : -1}
            aria-label="${title}, ${frame.label}${heatLabel(episode, frame, options)}"
            title="Open at ${frame.label} ( Enter )"
            @click=${() => open(frame.turn)}
          >
            ${frameView(episode, frame, options)}${frame.label}
          </button>`,
      )}
    </div>
  </section>`;
}

/** The heat map of a frame's picture, if there is one. */
function heatOf({ id }: Episode, { turn, index }: FilmFrame, { heat }: TurnOptions): HeatMap | undefined {
  return turn === null ? undefined : heat?.of(id, turn)?.pictures[index];
}

function heatLabel(episode: Episode, frame: FilmFrame, options: TurnOptions): string {
  const map = heatOf(episode, frame, options);
  return map ? `, heat map ${describeStrongest(map)}` : '';
}

function frameView(episode: Episode, frame: FilmFrame, options: TurnOptions): TemplateResult {
  const { picture } = frame;
  if (picture === null) return html`<span class="film-missing">missing</span>`;
  const map = heatOf(episode, frame, options);
  return map
    ? heatPicture({ src: picture, label: '', map, most: options.heat!.most, theme: options.theme, bare: true })
    : html`<lazy-picture .src=${picture} .label=${''}></lazy-picture>`;
}

/** Moves the focus by arrow keys, Home and End: along a strip, and to the same place of the strip above or below. */
function moveFocus(event: KeyboardEvent): void {
  const frame = event.target instanceof Element ? event.target.closest('.film-frame') : null;
  const own = frame?.closest('.film-strip');
  if (!frame || !own || event.ctrlKey || event.metaKey || event.altKey) return;
  const framesOf = (strip: Element): HTMLElement[] => [...strip.querySelectorAll<HTMLElement>('.film-frame')];
  const frames = framesOf(own);
  const at = frames.findIndex(each => each === frame);
  const beside = (next: Element | null): HTMLElement | undefined => {
    const others = next?.matches('.film-strip') ? framesOf(next) : [];
    return others[Math.min(at, others.length - 1)];
  };
  const targets: Record<string, () => HTMLElement | undefined> = {
    ArrowLeft: () => frames[at - 1],
    ArrowRight: () => frames[at + 1],
    ArrowUp: () => beside(own.previousElementSibling),
    ArrowDown: () => beside(own.nextElementSibling),
    Home: () => frames[0],
    End: () => frames[frames.length - 1],
  };
  if (!Object.hasOwn(targets, event.key)) return;
  event.preventDefault();
  const to = targets[event.key]();
  to?.focus({ preventScroll: true });
  to?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}
