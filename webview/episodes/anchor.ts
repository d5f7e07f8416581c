// Keeps the turn that is read in its place while what is shown changes to another episode.

export interface Anchor {
  turn: number;
  /** Pixels from the pane's top to the turn's. */
  offset: number;
}

/** The turn that is read now: the last that begins above the pane's upper third. Null at the very top. */
export function turnInView(pane: HTMLElement): Anchor | null {
  if (pane.scrollTop === 0) return null;
  const top = pane.getBoundingClientRect().top;
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const offset = (turn: HTMLElement) => turn.getBoundingClientRect().top - top;
  const current = turns.filter(turn => offset(turn) <= pane.clientHeight / 3).at(-1) ?? turns[0];
  return current ? { turn: Number(current.dataset.turn), offset: offset(current) } : null;
}

/** Scrolls so that the same turn, or the last where there are fewer, stands where it stood. */
export function keepInView(pane: HTMLElement, { turn, offset }: Anchor): void {
  const turns = [...pane.querySelectorAll<HTMLElement>('[data-turn]')];
  const target = turns.find(element => Number(element.dataset.turn) === turn) ?? turns.at(-1);
  if (target) pane.scrollTop += target.getBoundingClientRect().top - pane.getBoundingClientRect().top - offset;
}
