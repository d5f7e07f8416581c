// The user message of a turn in mode `single_turn` (RAGEN's SimpleMemory and AlfWorldMemory): a summary of previous
// turns, then the current turn. Pure text functions. The summary begins at the turn index `first`, which the context
// window determines.
import { withAnswerTag } from '../../common/tagged-text';
import type { MemoryText } from './context-window';
import { canonicalText, demandText, rewardValue, stateText } from './turn-protocol';

/** Summary with the complete state, response and reward of each turn in the window. */
export const simpleMemory: MemoryText = ({ prompts, history }, first, protocol) => {
  const current = prompts[prompts.length - 1];
  const now = `(Turn ${current.turn}):\n${stateText(current, protocol)}`;
  const shown = history.slice(first);
  if (shown.length === 0) return now;
  const blocks = shown.map((turn, index) => {
    const number = first + index + 1;
    const { reward, executed } = turn;
    // The prompt's state, because it has the marks of its pictures.
    const state = withAnswerTag(prompts[number - 1].state, protocol.answer_tag);
    return `Turn ${number} State:\n${state}\nTurn ${number} Action:\n${canonicalText(turn, protocol.answer_tag)}\nTurn ${number} Reward:\n${rewardValue(reward, executed.length)}\n`;
  });
  return (
    `Summary: ${history.length} step(s) completed so far, showing the last ${shown.length} turn(s) below.\n\n` +
    `Recent turns:\n---\n${blocks.join('---\n')}---\n\nCurrent Turn ${now}`
  );
};

/** Maximum characters of an observation, including the three dots at the end of a truncated observation. */
const longestObservation = 200;

/**
 * Summary for ALFWorld: the task, the truncated observations with the actions taken, and the actions that are
 * admissible now.
 */
export const alfWorldMemory: MemoryText = ({ prompts, history }, first, protocol) => {
  const current = prompts[prompts.length - 1];
  const { observation, admissible } = alfWorldState(current.state);
  const task = /your task is to:?\s*(?<task>.+)/i.exec(prompts[0].state)?.groups?.task.trim();
  const shown = history.slice(first).map(({ state, answer, raw }, index) => {
    const number = first + index + 1;
    return `[Observation ${number}: '${cut(alfWorldState(state).observation)}', Action ${number}: '${answer ?? raw}']`;
  });
  const lines = [
    ...(task ? [`Your task is to: ${task}`] : []),
    ...(shown.length > 0
      ? [
          `You have taken ${history.length} step(s) so far. The most recent ${shown.length} observations and actions:`,
          shown.join(' '),
        ]
      : []),
    `You are at step ${current.turn}. Your current observation is: ${observation}`,
    ...(admissible === null ? [] : [`Your admissible actions now are: [${admissible}].`]),
    ...(current.warn ? ['Your last answer held no valid action.'] : []),
  ];
  return `${lines.join('\n')}\n${demandText(current, protocol)}`;
};

/**
 * Splits an ALFWorld state into its observation, without banner and task, and its list of admissible actions (null if
 * the state has no such list).
 */
function alfWorldState(state: string): { observation: string; admissible: string | null } {
  const list = /admissible actions:\s*\[(?<actions>[^\]]*)\]/i.exec(state);
  const text = (list ? state.slice(0, list.index) + state.slice(list.index + list[0].length) : state)
    .replace(/-=.*?=-/gs, '')
    .replace(/your task is to:?.*/gi, '');
  return { observation: text.replace(/\s+/g, ' ').trim(), admissible: list?.groups?.actions.trim() ?? null };
}

const cut = (text: string): string =>
  text.length > longestObservation ? `${text.slice(0, longestObservation - 3)}...` : text;
