// A frozen lake for the agents of this folder: 4 × 4 cells, without slipping. The seed chooses the map. The texts are
// those that the bundled model ragen-tiny has learned to read. Knows nothing of models and training.

const moves = { left: [0, -1], down: [1, 0], right: [0, 1], up: [-1, 0] };
const size = 4;
const mostMoves = 10;

export const task = `You're a helpful assistant. Walk over the frozen lake to the goal and keep out of the holes.
Symbols in the state:
P: player, _: empty, O: hole, G: goal, X: player in hole, √: player on goal
Available actions:
Left, Down, Right, Up
You can take up to ${mostMoves} actions in all, at most 2 per answer, separated by " || ".`;

/** Returns random numbers in [0, 1) from a seed (mulberry32). */
function randomOf(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const same = ([a, b], [c, d]) => a === c && b === d;

export class Lake {
  taken = 0;
  turn = 0;

  constructor(seed) {
    const random = randomOf(seed);
    const cell = () => [Math.floor(random() * size), Math.floor(random() * size)];
    do {
      [this.start, this.goal] = [cell(), cell()];
      const cells = Array.from({ length: size * size }, (_, i) => [Math.floor(i / size), i % size]);
      this.holes = cells.filter(at => random() < 0.2 && !same(at, this.start) && !same(at, this.goal));
    } while (same(this.start, this.goal) || !this.isReachable());
    this.player = this.start;
  }

  /** Whether the player is on the goal. */
  get solved() {
    return same(this.player, this.goal);
  }

  get over() {
    return this.solved || this.isHole(this.player) || this.taken >= mostMoves;
  }

  /** Returns the message for the next turn. */
  message() {
    const at = ([row, column]) => `(${row}, ${column})`;
    const rows = Array.from({ length: size }, (_, row) =>
      Array.from({ length: size }, (_, column) => this.symbol([row, column])).join(''),
    );
    return `\nTurn ${++this.turn}:\nState:\nCoordinates: \nBoard size: ${size} rows x ${size} cols (zero-indexed).
Start: ${at(this.start)}\nGoal: ${at(this.goal)}\nPlayer: ${at(this.player)}\nHoles: ${this.holes.map(at).join(', ')}
Grid Map: \n${rows.join('\n')}\nYou have ${mostMoves - this.taken} actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> with no extra text. Strictly follow this format. Max response length: 60 words (tokens).\n`;
  }

  /** Plays the moves in the tags of an answer; at most two. */
  play(text) {
    const answer = /<answer>(.*?)<\/answer>/s.exec(text)?.[1] ?? '';
    for (const name of answer.split('||').slice(0, 2)) {
      const move = moves[name.trim().toLowerCase()];
      if (!move || this.over) break;
      this.taken++;
      const [row, column] = [this.player[0] + move[0], this.player[1] + move[1]];
      if (row >= 0 && row < size && column >= 0 && column < size) this.player = [row, column];
    }
  }

  symbol(at) {
    if (same(at, this.player)) return this.solved ? '√' : this.isHole(at) ? 'X' : 'P';
    return same(at, this.goal) ? 'G' : this.isHole(at) ? 'O' : '_';
  }

  isHole(at) {
    return this.holes.some(hole => same(hole, at));
  }

  isReachable() {
    const found = [this.start];
    for (const [row, column] of found)
      for (const [down, right] of Object.values(moves)) {
        const next = [row + down, column + right];
        const isInside = next.every(value => value >= 0 && value < size);
        if (isInside && !this.isHole(next) && !found.some(at => same(at, next))) found.push(next);
      }
    return found.some(at => same(at, this.goal));
  }
}
