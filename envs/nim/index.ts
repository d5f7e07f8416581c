// Nim for two players, as self-play between two roles, or against an opponent in this code. By default, the player to move
// can win in the first position, so one mistake decides against a perfect opponent. The seed determines the heaps. A legal move
// is a named action, such as A2: two objects from heap A.
import { z } from 'zod';
import { defineEnvironment, type ActionLookup, type StepResult } from '../api/environment';
import { Pcg64 } from '../api/random/pcg64';
import { afterMove, isOver, legalMoves, nimSum, perfectMove, winningMove, type Heaps, type Move } from './game';

const config = z.strictObject({
  heaps: z.int().min(1).max(6).default(3).describe('number of heaps'),
  largest: z.int().min(2).max(9).default(3).describe('largest number of objects in a heap at the start'),
  most: z.int().min(1).max(9).nullable().default(null).describe('largest number of objects in a move; null: no limit'),
  start: z
    .enum(['won', 'any'])
    .default('won')
    .describe('positions at the start: won for the player who begins, or any'),
  opponent: z
    .enum(['self', 'perfect', 'random'])
    .default('self')
    .describe(
      'self: both players are roles of the episode; perfect or random: the opponent is code of the environment',
    ),
  solver: z
    .enum(['perfect', 'random'])
    .default('perfect')
    .describe(
      'moves of the solver: perfect, or random legal moves, for demonstrations that teach the rules and the form of answers alone',
    ),
});

const idOf = ({ heap, count }: Move): number => heap * 10 + count;
const heapName = (heap: number): string => String.fromCharCode(65 + heap);
const nameOf = ({ heap, count }: Move): string => `${heapName(heap)}${count}`;
const namesOf = (moves: readonly Move[]): ActionLookup =>
  Object.fromEntries(moves.map(move => [idOf(move), nameOf(move)]));

const roles = ['first', 'second'] as const;

export default defineEnvironment({
  name: 'nim',
  config,
  instruction: ({ most }) =>
    `You play Nim. The players take objects from the heaps in turns. In your turn, take ${most === null ? 'one or more' : most === 1 ? 'one' : `one to ${most}`} objects from one heap, for example <answer>A2</answer> for two objects from heap A. Who takes the last object wins.`,
  actions: ({ heaps, largest, most }) => namesOf(legalMoves(new Array<number>(heaps).fill(largest), most ?? Infinity)),
  roles: ({ opponent }) => (opponent === 'self' ? { first: {}, second: {} } : undefined),
  create({ heaps: count, largest, most: limit, start, opponent, solver }) {
    const most = limit ?? Infinity;
    let heaps: Heaps = [];
    let [seed, member, plies] = [0, 0, 0];
    let last: Move | undefined;

    const observation = (): string => {
      const shown = heaps.map((size, heap) => `${heapName(heap)} ${size}`).join(', ');
      return last ? `${shown}\nOpponent: ${nameOf(last)}` : shown;
    };
    const randomMove = (at: Heaps, ply: number): Move => {
      const moves = legalMoves(at, most);
      return moves[new Pcg64(seed, [member, ply]).integers(0, moves.length)];
    };
    const reply = (at: Heaps, ply: number): Move =>
      opponent === 'perfect' ? perfectMove(at, most) : randomMove(at, ply);
    const next = () => ({ role: roles[plies % 2], actions: namesOf(legalMoves(heaps, most)) });

    /** Plays a legal move of a role. */
    const selfStep = (move: Move): StepResult => {
      heaps = afterMove(heaps, move);
      last = move;
      const [role, other] = plies % 2 === 0 ? roles : ([roles[1], roles[0]] as const);
      plies++;
      const info = { action_is_valid: true, action_is_effective: true };
      if (!isOver(heaps)) return { ...running(info), ...next() };
      return {
        ...{ observation: observation(), reward: 1, terminated: true, truncated: false },
        info: { ...info, success: role === 'first' },
        roles: { [role]: { success: true }, [other]: { reward: -1, success: false } },
      };
    };

    /** Plays a legal move of the model and the reply of the opponent. */
    const duelStep = (move: Move): StepResult => {
      heaps = afterMove(heaps, move);
      last = undefined;
      plies++;
      const success = isOver(heaps);
      if (!success) {
        last = reply(heaps, plies++);
        heaps = afterMove(heaps, last);
      }
      const info = { action_is_valid: true, action_is_effective: true };
      if (!isOver(heaps)) return running({ ...info, success: false });
      const result = { reward: success ? 1 : -1, terminated: true, truncated: false };
      return { observation: observation(), ...result, info: { ...info, success } };
    };
    const running = (info: StepResult['info']): StepResult => {
      return { observation: observation(), reward: 0, terminated: false, truncated: false, info };
    };

    return {
      reset(options) {
        ({ seed, member = 0 } = options);
        const random = new Pcg64(seed);
        do heaps = Array.from({ length: count }, () => random.integers(1, largest + 1));
        while (start === 'won' && nimSum(heaps, most) === 0);
        [plies, last] = [0, undefined];
        return { observation: observation(), ...(opponent === 'self' && next()) };
      },

      step(action) {
        if (isOver(heaps)) throw new Error('the game is over: reset it');
        const move = legalMoves(heaps, most).find(each => idOf(each) === action || nameOf(each) === action);
        if (move) return opponent === 'self' ? selfStep(move) : duelStep(move);
        const refused = running({ action_is_valid: false, action_is_effective: false });
        return opponent === 'self' ? { ...refused, ...next() } : refused;
      },

      render: observation,

      solve() {
        const lost = opponent !== 'self' && solver === 'perfect' && !winningMove(heaps, most);
        if (isOver(heaps) || lost) return undefined;
        const plan: number[] = [];
        let at = heaps;
        for (let ply = plies; !isOver(at); ply++) {
          const mine = opponent === 'self' || (ply - plies) % 2 === 0;
          const own = () => (solver === 'perfect' ? perfectMove(at, most) : randomMove(at, ply));
          const move = mine ? own() : reply(at, ply);
          if (mine) plan.push(idOf(move));
          at = afterMove(at, move);
        }
        return plan;
      },
    };
  },
});
