// Finds a grid map in a state's text and parses it as a Sokoban or FrozenLake board in RAGEN's symbols. The same letter
// has a different meaning in each of the two games (O: target or hole; X: box or player in a hole), and other games
// have walls and players too. The game is therefore determined from the environment's name or from all states of an
// episode. If the game remains ambiguous, the state is displayed as text. Pure functions.

export type Game = 'sokoban' | 'frozen_lake';

export type Cell =
  | 'wall'
  | 'empty'
  | 'target'
  | 'box'
  | 'box_on_target'
  | 'player'
  | 'player_on_target'
  | 'hole'
  | 'goal'
  | 'player_in_hole'
  | 'player_on_goal';

export interface Board {
  game: Game;
  cells: Cell[][];
  /** Text before and after the map, trimmed; empty if the state is only the map. */
  before: string;
  after: string;
}

const symbols: Record<Game, Record<string, Cell>> = {
  sokoban: { '#': 'wall', _: 'empty', O: 'target', '√': 'box_on_target', X: 'box', P: 'player', S: 'player_on_target' },
  frozen_lake: { P: 'player', _: 'empty', O: 'hole', G: 'goal', X: 'player_in_hole', '√': 'player_on_goal' },
};

/** Properties of an episode from which its game (Sokoban or FrozenLake) is determined. */
export interface PlayedStates {
  environment: { name: string };
  tag: string;
  /** The state of every turn, and the final state. */
  states: readonly string[];
}

/**
 * Returns which of the two games the states of an episode show. Returns null if they show neither Sokoban nor
 * FrozenLake, or if they could show either.
 */
export function gameOf({ environment, tag, states }: PlayedStates): Game | null {
  const name = `${environment.name} ${tag}`.toLowerCase();
  const present = new Set(states.flatMap(state => findMap(state.split('\n'))?.map.flat() ?? []));
  const named = name.includes('sokoban') ? 'sokoban' : /frozen[\s_-]?lake/.test(name) ? 'frozen_lake' : null;
  if (named) return fits(present, named) ? named : null;
  const has = (...some: string[]) => some.some(symbol => present.has(symbol));
  // A single state may lack a game's essential symbols, for example while the player is on the goal. It therefore
  // suffices that each essential symbol occurs in some state of the episode.
  if (fits(present, 'sokoban') && has('#') && has('X', '√') && has('O', '√', 'S')) return 'sokoban';
  return fits(present, 'frozen_lake') && has('P') && has('G') && has('O') ? 'frozen_lake' : null;
}

/** Parses the board in a state's text; returns null if the text contains no board. */
export function readBoard(state: string, game: Game | null): Board | null {
  if (!game) return null;
  const lines = state.split('\n');
  const found = findMap(lines);
  if (!found || !fits(new Set(found.map.flat()), game)) return null;
  const { map, from, to } = found;
  const cells = map.map(row => row.map(symbol => symbols[game][symbol]));
  const text = (part: string[]) => part.join('\n').trim();
  return { game, cells, before: text(lines.slice(0, from)), after: text(lines.slice(to)) };
}

/** Finds the largest block of lines [from, to) that are map rows of equal width. */
function findMap(lines: readonly string[]): { map: string[][]; from: number; to: number } | null {
  const rows = lines.map(line => cellsOf(line));
  let best: { from: number; to: number } | null = null;
  for (let from = 0; from < rows.length;) {
    const width = rows[from]?.length ?? 0;
    let to = from;
    while (to < rows.length && width >= 2 && rows[to]?.length === width) to++;
    if (to - from >= 2 && (!best || to - from > best.to - best.from)) best = { from, to };
    from = Math.max(to, from + 1);
  }
  return best && { map: rows.slice(best.from, best.to) as string[][], ...best };
}

/**
 * Returns the cells that differ between two boards of equal size, as `row,column`. Returns an empty set if the sizes
 * differ.
 */
export function changedCells(board: Board, previous: Board | null): Set<string> {
  const changed = new Set<string>();
  if (!previous || previous.cells.length !== board.cells.length || previous.cells[0].length !== board.cells[0].length)
    return changed;
  board.cells.forEach((row, r) => row.forEach((cell, c) => cell !== previous.cells[r][c] && changed.add(`${r},${c}`)));
  return changed;
}

/** Describes the board as text for screen readers. */
export function describeBoard({ game, cells }: Board): string {
  const places = (...kinds: Cell[]) =>
    cells.flatMap((row, r) => row.flatMap((cell, c) => (kinds.includes(cell) ? [`(${r}, ${c})`] : [])));
  const say = (label: string, found: string[]) => (found.length > 0 ? [`${label} ${found.join(' ')}`] : []);
  const name = game === 'sokoban' ? 'Sokoban' : 'FrozenLake';
  return [
    `${name} board, ${cells.length} × ${cells[0].length}, (row, column) from 0`,
    ...say('player', places('player', 'player_on_target', 'player_on_goal', 'player_in_hole')),
    ...say('boxes', places('box')),
    ...say('boxes on target', places('box_on_target')),
    ...say('targets', places('target', 'player_on_target')),
    ...say('goal', places('goal', 'player_on_goal')),
    ...say('holes', places('hole', 'player_in_hole')),
  ].join('; ');
}

/** Returns the symbols of a line without blanks, or null if the line is not a map row. */
function cellsOf(line: string): string[] | null {
  const cells = [...line.replace(/[ \t\r]/g, '')];
  return cells.length > 0 && cells.every(cell => '#_O√XPSG'.includes(cell)) ? cells : null;
}

const fits = (present: ReadonlySet<string>, game: Game): boolean =>
  [...present].every(symbol => symbol in symbols[game]);
