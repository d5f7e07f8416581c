// User actions of the Play page, called by the views.
import type { PlayDo } from '../../extension/protocol/environment-tools';

export interface PlayActions {
  connect(): void;
  /** Sends a request, unless `request` is null or another request is in flight. */
  ask(request: PlayDo | null): void;
  /** Performs the action that is assigned to a key. */
  press(key: string): void;
  /** Shows the state after a step; 0 is the initial state. */
  view(step: number): void;
  typeAnswer(text: string): void;
  typeSeed(text: string): void;
  /** Opens the environment's source, at `file:line` if given. */
  openSource(at?: string): void;
  check(): void;
}
