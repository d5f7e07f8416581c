// What a context memory receives for a turn, and the user message that follows from what it returns: the same for built-in
// memories and plug-ins. Pure text functions.
import type { Memory, MemoryRequest } from '../../../envs/api/plugins/memory';
import type { TurnHistory } from './environment-state-manager';
import { demandText, stateText, turnText, type TurnPrompt, type TurnProtocol } from './turn-protocol';

/** What windows and memories read of a previous turn. */
export type HistoryTurn = Pick<TurnHistory, 'state' | 'raw' | 'thought' | 'answer' | 'reward' | 'executed'>;

/**
 * Returns the argument of a memory. Its texts have the marks of their pictures.
 * @param first index of the oldest turn that the summary should describe
 */
export function memoryRequest(
  { prompts, history }: { prompts: readonly TurnPrompt[]; history: readonly HistoryTurn[] },
  first: number,
  environment: string,
  protocol: TurnProtocol,
): MemoryRequest {
  const current = prompts[prompts.length - 1];
  const { state, warn } = current;
  return {
    ...{ environment, turn: prompts.length, state, warn },
    ...{ current: stateText(current, protocol), instructions: demandText(current, protocol) },
    answer_tag: protocol.answer_tag ?? 'answer',
    past: history.map(({ state, raw, thought, answer, executed, reward }, i) => ({
      ...{ turn: i + 1, state, raw, thought, answer, executed, reward },
    })),
    shown: prompts.length - 1 - first,
  };
}

/** Returns the user message of a turn from what a memory returned. */
export function userMessage(
  remembered: ReturnType<Memory['remember']>,
  current: TurnPrompt,
  protocol: TurnProtocol,
): string {
  if (typeof remembered !== 'string') return remembered.message;
  const now = turnText(current, protocol);
  return remembered === '' ? now : `${remembered}\n${now}`;
}
