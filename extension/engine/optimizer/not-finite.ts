// The only engine failure that may be transient: an overflow on one batch of texts need not recur on the next batch.
import { UserError } from '../../common/user-error';

/** Thrown if logits are not finite. */
export class NotFiniteError extends UserError {}
