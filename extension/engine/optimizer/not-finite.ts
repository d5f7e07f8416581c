// The engine's only transient failure: overflow on one batch of texts, which may not recur on the next.
import { UserError } from '../../common/user-error';

/** Logits are not finite. */
export class NotFiniteError extends UserError {}
