// Error for logits that are not finite. Unlike all other engine failures, this error may be transient: an overflow on
// one batch of texts may not occur on the next batch.
import { UserError } from '../../common/user-error';

/** Thrown if logits are not finite. */
export class NotFiniteError extends UserError {}
