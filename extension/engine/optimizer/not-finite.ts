// Error for logits that are not finite. It may be transient, unlike all other engine failures: an overflow on one batch
// of texts may not occur on the next batch.
import { UserError } from '../../common/user-error';

/** Thrown if logits are not finite. */
export class NotFiniteError extends UserError {}
