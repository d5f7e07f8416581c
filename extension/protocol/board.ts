// Finds a grid map in a state's text and reads it as a board: Sokoban's and FrozenLake's symbols as RAGEN writes them. The same
// letter means different things in the two (O: target or hole; X: box or player in a hole), so the game is told by its walls or
// its name; what is not surely one of the two stays text. Pure.

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
  /** The text before and behind the map, trimmed; empty when the state is the map alone. */
  before: string;
  after: string;
}

const symbols: Record<Game, Record<string, Cell>> = {
  sokoban: { '#': 'wall', _: 'empty', O: 'target', '√': 'box_on_target', X: 'box', P: 'player', S: 'player_on_target' },
  frozen_lake: { P: 'player', _: 'empty', O: 'hole', G: 'goal', X: 'player_in_hole', '√': 'player_on_goal' },
};

/** The board in a state's text, null where there is none. `environment` is the environment's name or tag. */
export function readBoard(state: string, environment: string): Board | null {
  const lines = state.split('\n');
  const rows = lines.map(line => cellsOf(line));
  let best: { from: number; to: number } | null = null;
  for (let from = 0; from < rows.length;) {
    const width = rows[from]?.length ?? 0;
    let to = from;
    while (to < rows.length && width >= 2 && rows[to]?.length === width) to++;
    if (to - from >= 2 && (!best || to - from > best.to - best.from)) best = { from, to };
    from = Math.max(to, from + 1);
  }
  if (!best) return null;
  const map = rows.slice(best.from, best.to) as string[][];
  const game = gameOf(map, environment);
  if (!game) return null;
  const cells = map.map(row => row.map(symbol => symbols[game][symbol]));
  const text = (part: string[]) => part.join('\n').trim();
  return { game, cells, before: text(lines.slice(0, best.from)), after: text(lines.slice(best.to)) };
}

/** Cells that differ between two boards of one size, as `row,column`; none where sizes differ. */
export function changedCells(board: Board, previous: Board | null): Set<string> {
  const changed = new Set<string>();
  if (!previous || previous.cells.length !== board.cells.length || previous.cells[0].length !== board.cells[0].length)
    return changed;
  board.cells.forEach((row, r) => row.forEach((cell, c) => cell !== previous.cells[r][c] && changed.add(`${r},${c}`)));
  return changed;
}

/** The board in words, for those who do not see it. */
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

/** The line's symbols, blanks between them dropped; null when it is no row of a map. */
function cellsOf(line: string): string[] | null {
  const cells = [...line.replace(/[ \t\r]/g, '')];
  return cells.length > 0 && cells.every(cell => '#_O√XPSG'.includes(cell)) ? cells : null;
}

function gameOf(map: string[][], environment: string): Game | null {
  const present = new Set(map.flat());
  const fits = (game: Game) => [...present].every(symbol => symbol in symbols[game]);
  const name = environment.toLowerCase();
  const named = name.includes('sokoban') ? 'sokoban' : /frozen|lake/.test(name) ? 'frozen_lake' : null;
  if (named) return fits(named) ? named : null;
  if (present.has('#')) return fits('sokoban') ? 'sokoban' : null;
  return present.has('G') && fits('frozen_lake') ? 'frozen_lake' : null;
}
