// A context memory: the moves of earlier turns in one line, without their states. With prompts of one turn, the model so
// knows which way it came, at the price of a few tokens.
import { defineMemory } from 'ragen-workbench/api/plugins/memory';

export default defineMemory({
  name: 'moves_so_far',

  remember({ past, shown }) {
    const moves = past.slice(past.length - shown).flatMap(({ executed }) => executed);
    return moves.length === 0 ? '' : `Moves so far: ${moves.join(', ')}.\n`;
  },
});
