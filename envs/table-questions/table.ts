// The table and the question of an episode, drawn from its seed. A table lists goods with their price and stock. The
// numbers are invented for each episode, so that a question about the table cannot be answered from memory.
import type { Pcg64 } from '../api/random/pcg64';

const goods = ['apple', 'bread', 'candle', 'drum', 'engine', 'flute', 'glove', 'hammer', 'ink', 'jar', 'kite', 'lamp'];
export const columns = ['price', 'stock'] as const;
export type Column = (typeof columns)[number];

export interface Row extends Record<Column, number> {
  item: string;
}

export const kinds = ['arithmetic', 'lookup', 'total'] as const;
export type Kind = (typeof kinds)[number];

/** A cell of the table that a solution needs. */
export interface Cell {
  item: string;
  column: Column;
}

export interface Question {
  text: string;
  /** Cells that the solution looks up; empty if the question does not concern the table. */
  cells: Cell[];
  /** The expression whose value is the answer, from the values of the cells; undefined if the answer is the only cell. */
  expression?: (values: readonly number[]) => string;
  answer: number;
}

/** Draws a table of `rows` different goods with numbers from 1 to `highest`. */
export function drawTable(random: Pcg64, rows: number, highest: number): Row[] {
  const left = [...goods];
  return Array.from({ length: Math.min(rows, goods.length) }, () => {
    const [item] = left.splice(random.integers(0, left.length), 1);
    const number = () => random.integers(1, highest + 1);
    return { item, price: number(), stock: number() };
  });
}

/** Draws a question of a kind about the table. */
export function drawQuestion(random: Pcg64, kind: Kind, table: readonly Row[], highest: number): Question {
  const number = () => random.integers(2, highest + 1);
  if (kind === 'arithmetic') {
    const [a, b] = [number(), number()];
    const sign = ['+', '-', '*'][random.integers(0, 3)];
    const answer = sign === '+' ? a + b : sign === '-' ? a - b : a * b;
    return { text: `What is ${a} ${sign} ${b}?`, cells: [], expression: () => `${a} ${sign} ${b}`, answer };
  }
  const [first, second] = shuffled(random, table);
  if (kind === 'lookup') {
    const column = columns[random.integers(0, columns.length)];
    const cells = [{ item: first.item, column }];
    return { text: `What is the ${column} of ${first.item}?`, cells, answer: first[column] };
  }
  const [m, n] = [number(), number()];
  return {
    text: `What do ${m} ${first.item} and ${n} ${second.item} cost?`,
    cells: [first, second].map(({ item }) => ({ item, column: 'price' })),
    expression: ([p, q]) => `${m} * ${p} + ${n} * ${q}`,
    answer: m * first.price + n * second.price,
  };
}

function shuffled(random: Pcg64, table: readonly Row[]): Row[] {
  const left = [...table];
  return table.map(() => left.splice(random.integers(0, left.length), 1)[0]);
}
