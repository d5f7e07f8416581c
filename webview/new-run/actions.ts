// User actions of the New Run page, called by the views.
import type { NewRunChoice } from '../../extension/protocol/new-run-page';

export interface NewRunActions {
  connect(): void;
  /** Changes the user's choices. The plan is requested after a pause, or immediately if `now` is true. */
  change(part: Partial<NewRunChoice>, now?: boolean): void;
  /** Lets the user connect to a further engine. */
  connectEngine(): void;
  save(): void;
  start(): void;
}
