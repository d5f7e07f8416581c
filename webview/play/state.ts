// The state of the Play page. The session is in the host; the page adds the typed texts and the displayed step.
import type { PlayReply, PlaySession } from '../../extension/protocol/environment-tools';

export interface PlayState {
  /** `failed` is the error message if the environment could not be started. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  /** The newest reply of the host. */
  readonly reply: PlayReply | null;
  /** Step whose state is displayed; null for the newest. */
  readonly looked: number | null;
  /** A source file that was saved after the running code had been built; null if there is none. */
  readonly stale: string | null;
  /** Whether a request is in flight; further requests are dropped. */
  readonly busy: boolean;
  /**
   * Text of the answer field. `seed` is the text of the seed field; if `seed` is null, the field shows the episode's
   * seed.
   */
  readonly answer: string;
  readonly seed: string | null;
}

export const initialState: PlayState = {
  connection: 'connecting',
  reply: null,
  looked: null,
  stale: null,
  busy: false,
  answer: '',
  seed: null,
};

/** Returns the step whose state is displayed; 0 is the initial state. */
export const viewedStep = ({ looked }: PlayState, { steps }: PlaySession): number => looked ?? steps.length;
