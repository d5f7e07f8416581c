// The state of the Play page. The host owns the session; the page adds what is being typed and which step is viewed.
import type { PlayReply, PlaySession } from '../../extension/protocol/environment-tools';

export interface PlayState {
  /** `failed` is the message of an environment that could not be started. */
  readonly connection: 'connecting' | 'connected' | { readonly failed: string };
  /** The newest reply of the host. */
  readonly reply: PlayReply | null;
  /** The step whose state is viewed; null for the newest. */
  readonly looked: number | null;
  /** A source file that was saved after the code in use was built. */
  readonly stale: string | null;
  /** A request is being answered; no other one is sent. */
  readonly busy: boolean;
  /** The answer and the seed being typed; a seed of null is the episode's. */
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

/** The step whose state is viewed; 0 is the initial state. */
export const viewedStep = ({ looked }: PlayState, { steps }: PlaySession): number => looked ?? steps.length;
