// The reducer of the Play page. Pure function.
import type { PlayDo, PlayReply } from '../../extension/protocol/environment-tools';
import type { PlayState } from './state';

export type PlayEvent =
  | { readonly type: 'connecting' }
  | { readonly type: 'connected'; readonly reply: PlayReply }
  | { readonly type: 'failed'; readonly message: string }
  | { readonly type: 'asked' }
  | { readonly type: 'replied'; readonly asked: PlayDo; readonly reply: PlayReply }
  | { readonly type: 'refused'; readonly message: string }
  | { readonly type: 'stale'; readonly file: string }
  | { readonly type: 'view'; readonly step: number }
  | { readonly type: 'answer-typed'; readonly text: string }
  | { readonly type: 'seed-typed'; readonly text: string };

export function reduce(state: PlayState, event: PlayEvent): PlayState {
  switch (event.type) {
    case 'connecting':
      return state.reply ? state : { ...state, connection: 'connecting' };
    case 'connected':
      return { ...state, connection: 'connected', reply: event.reply, looked: null };
    case 'failed':
      return { ...state, connection: { failed: event.message } };
    case 'asked':
      return { ...state, busy: true };
    case 'replied':
      return replied(state, event.asked, event.reply);
    case 'refused':
      return { ...state, busy: false, reply: { id: 0, ...state.reply, error: { message: event.message } } };
    case 'stale':
      return { ...state, stale: event.file };
    case 'view':
      return { ...state, looked: event.step === state.reply?.session?.steps.length ? null : event.step };
    case 'answer-typed':
      return { ...state, answer: event.text };
    case 'seed-typed':
      return { ...state, seed: event.text };
  }
}

/**
 * Stores a reply of the host. If the host accepted the user's answer, the answer field is cleared. If the host refused
 * the answer, the text stays in the field for correction.
 */
function replied(state: PlayState, asked: PlayDo, reply: PlayReply): PlayState {
  const stepsOf = (of: PlayReply | null): number => of?.session?.steps.length ?? 0;
  const isTaken = asked.do === 'act' && stepsOf(reply) > stepsOf(state.reply);
  return {
    ...state,
    reply,
    busy: false,
    looked: null,
    seed: null,
    answer: isTaken ? '' : state.answer,
    stale: asked.do === 'reload' ? null : state.stale,
  };
}
