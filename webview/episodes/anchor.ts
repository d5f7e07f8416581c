// Keeps the current turn at its scroll position when another episode of the same prompt is shown, or the same one in
// another form.
import type { Shown } from './state';

interface Anchor {
  turn: number;
  /** Pixels from the top of the pane to the top of the turn. */
  offset: number;
}

/** Remembers the position in the pane. Call the result when the pane shows `now` in place of `before`. */
export function holdPosition(pane: HTMLElement | null, before: Shown | null, now: Shown | null): () => void {
  if (!pane || now?.kind !== 'episode') return () => undefined;
  const samePrompt =
    before?.kind === 'episode' && before.episode.tag === now.episode.tag && before.episode.seed === now.episode.seed;
  const [anchor, across] = [samePrompt ? turnInView(pane) : null, pane.scrollLeft];
  return () => {
    if (anchor) keepInView(pane, anchor);
    else pane.scrollTop = 0;
    if (now.subject.reading !== 'group') return;
    pane.scrollLeft = samePrompt ? across : 0;
    // `scrollIntoView` is undefined in environments without layout.
    pane.querySelector('.grid-head.current')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
  };
}

/** The turn being read: the last one that starts above the first third of the pane. Null at scroll position 0. */
function turnInView(pane: HTMLElement): Anchor | null {
  if (pane.scrollTop === 0) return null;
  const { top } = pane.getBoundingClientRect();
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const offset = (turn: HTMLElement): number => turn.getBoundingClientRect().top - top;
  const current = turns.filter(turn => offset(turn) <= pane.clientHeight / 3).at(-1) ?? turns[0];
  return current ? { turn: Number(current.dataset.turn), offset: offset(current) } : null;
}

/** Scrolls so that the same turn, or the last one if there are fewer, has the same position. */
function keepInView(pane: HTMLElement, { turn, offset }: Anchor): void {
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const target = turns.find(element => Number(element.dataset.turn) === turn) ?? turns.at(-1);
  if (target) pane.scrollTop += target.getBoundingClientRect().top - pane.getBoundingClientRect().top - offset;
}
