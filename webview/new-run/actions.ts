// What a user can do on the New Run page; the views call it.
import type { NewRunChoice } from '../../extension/protocol/new-run-page';

/** What the user can do on the page. */
export interface NewRunActions {
  connect(): void;
  /** Changes the choices; `now` plans them without a pause. */
  change(part: Partial<NewRunChoice>, now?: boolean): void;
  save(): void;
  start(): void;
}
