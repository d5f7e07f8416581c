// The one failure of the engine that may pass by itself: numbers that overflowed, of this batch of texts and not of the next.
import { UserError } from '../../protocol/user-error';

/** Logits that are no numbers. */
export class NotFiniteError extends UserError {}
