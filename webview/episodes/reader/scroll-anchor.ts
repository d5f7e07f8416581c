// Keeps the current turn at its scroll position when another episode of the same prompt is opened, or when the same
// episode is displayed in another way.
import type { Shown } from '../state';

interface Anchor {
  turn: number;
  /** Pixels from the top of the pane to the top of the turn. */
  offset: number;
}

/**
 * Stores the scroll position of the pane and returns a function that restores it. The caller calls `holdPosition`
 * before the pane renders `now`, and the returned function afterwards.
 */
export function holdPosition(pane: HTMLElement | null, before: Shown | null, now: Shown | null): () => void {
  if (!pane || now?.kind !== 'episode') return () => undefined;
  const samePrompt =
    before?.kind === 'episode' && before.episode.tag === now.episode.tag && before.episode.seed === now.episode.seed;
  const [anchor, across] = [samePrompt ? turnInView(pane) : null, pane.scrollLeft];
  return () => {
    if (anchor) keepInView(pane, anchor);
    else pane.scrollTop = 0;
    if (now.subject.reading !== 'group') return;
    const wasGroup = before?.kind === 'episode' && before.subject.reading === 'group';
    pane.scrollLeft = samePrompt && wasGroup ? across : 0;
    if (!wasGroup) return; // the group opens at its first member
    // `scrollIntoView` is undefined in environments without layout.
    pane.querySelector('.grid-head.current')?.scrollIntoView?.({ block: 'nearest', inline: 'nearest' });
  };
}

/**
 * Returns the turn being read: the last turn that starts above the end of the pane's upper third. Returns null at
 * scroll position 0.
 */
function turnInView(pane: HTMLElement): Anchor | null {
  if (pane.scrollTop === 0) return null;
  const { top } = pane.getBoundingClientRect();
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const offset = (turn: HTMLElement): number => turn.getBoundingClientRect().top - top;
  const current = turns.filter(turn => offset(turn) <= pane.clientHeight / 3).at(-1) ?? turns[0];
  return current ? { turn: Number(current.dataset.turn), offset: offset(current) } : null;
}

/**
 * Scrolls so that the turn with the stored number has the stored offset. If the episode has fewer turns, its last turn
 * is used.
 */
function keepInView(pane: HTMLElement, { turn, offset }: Anchor): void {
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const target = turns.find(element => Number(element.dataset.turn) === turn) ?? turns.at(-1);
  if (target) pane.scrollTop += target.getBoundingClientRect().top - pane.getBoundingClientRect().top - offset;
}
