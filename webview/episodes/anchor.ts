// Keeps the current turn at its scroll position when another episode is shown.

export interface Anchor {
  turn: number;
  /** Pixels from the top of the pane to the top of the turn. */
  offset: number;
}

/** The turn being read: the last one that starts above the first third of the pane. Null at scroll position 0. */
export function turnInView(pane: HTMLElement): Anchor | null {
  if (pane.scrollTop === 0) return null;
  const top = pane.getBoundingClientRect().top;
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const offset = (turn: HTMLElement) => turn.getBoundingClientRect().top - top;
  const current = turns.filter(turn => offset(turn) <= pane.clientHeight / 3).at(-1) ?? turns[0];
  return current ? { turn: Number(current.dataset.turn), offset: offset(current) } : null;
}

/** Scrolls so that the same turn, or the last one if there are fewer, has the same position. */
export function keepInView(pane: HTMLElement, { turn, offset }: Anchor): void {
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const target = turns.find(element => Number(element.dataset.turn) === turn) ?? turns.at(-1);
  if (target) pane.scrollTop += target.getBoundingClientRect().top - pane.getBoundingClientRect().top - offset;
}
