// What a user can do on the Play page; the views call it.
import type { PlayDo } from '../../extension/protocol/environment-tools';

/** What the user can do on the page. */
export interface PlayActions {
  connect(): void;
  /** Sends a request, unless it is null or another one is being answered. */
  ask(request: PlayDo | null): void;
  /** What a key does. */
  press(key: string): void;
  /** Shows the state after a step; 0 is the initial state. */
  view(step: number): void;
  typeAnswer(text: string): void;
  typeSeed(text: string): void;
  /** Opens the environment's source, at `file:line` if given. */
  openSource(at?: string): void;
  check(): void;
}
