// The built-in context memories (RAGEN's SimpleMemory and AlfWorldMemory) in the interface that plug-ins implement. Each
// writes the complete user message: a summary of previous turns, then the current turn. Pure text functions.
import { defineMemory, type MemoryPlugin, type MemoryRequest } from '../../../envs/api/plugins/memory';
import { withAnswerTag } from '../../common/tagged-text';
import { canonicalText, rewardValue } from './turn-protocol';

/** Returns a summary with the complete state, response and reward of each turn in the window. */
function simpleMessage({ turn: now, current, answer_tag: tag, past, shown }: MemoryRequest): string {
  const asked = `(Turn ${now}):\n${current}`;
  if (shown === 0) return asked;
  const blocks = past.slice(past.length - shown).map(({ turn, state, executed, reward, ...response }) => {
    const action = canonicalText(response, tag);
    return `Turn ${turn} State:\n${withAnswerTag(state, tag)}\nTurn ${turn} Action:\n${action}\nTurn ${turn} Reward:\n${rewardValue(reward, executed.length)}\n`;
  });
  return (
    `Summary: ${past.length} step(s) completed so far, showing the last ${shown} turn(s) below.\n\n` +
    `Recent turns:\n---\n${blocks.join('---\n')}---\n\nCurrent Turn ${asked}`
  );
}

/** Maximum characters of an observation, including the three dots at the end of a truncated observation. */
const longestObservation = 200;

/**
 * Returns a summary for ALFWorld: the task, the truncated observations with the actions taken, and the actions that are
 * admissible now.
 */
function alfWorldMessage({ turn: now, state: text, instructions, warn, past, shown: count }: MemoryRequest): string {
  const { observation, admissible } = alfWorldState(text);
  const task = /your task is to:?\s*(?<task>.+)/i.exec(past.at(0)?.state ?? text)?.groups?.task.trim();
  const shown = past
    .slice(past.length - count)
    .map(
      ({ turn, state, answer, raw }) =>
        `[Observation ${turn}: '${cut(alfWorldState(state).observation)}', Action ${turn}: '${answer ?? raw}']`,
    );
  const lines = [
    ...(task ? [`Your task is to: ${task}`] : []),
    ...(shown.length > 0
      ? [
          `You have taken ${past.length} step(s) so far. The most recent ${shown.length} observations and actions:`,
          shown.join(' '),
        ]
      : []),
    `You are at step ${now}. Your current observation is: ${observation}`,
    ...(admissible === null ? [] : [`Your admissible actions now are: [${admissible}].`]),
    ...(warn ? ['Your last answer held no valid action.'] : []),
  ];
  return `${lines.join('\n')}\n${instructions}`;
}

const memory = (name: string, message: (request: MemoryRequest) => string): MemoryPlugin =>
  defineMemory({ name, firstTurn: true, remember: request => ({ message: message(request) }) });

/** The built-in memories by name. An environment without a memory of its name has `simple`. */
export const builtInMemories = {
  simple: memory('simple', simpleMessage),
  alfworld: memory('alfworld', alfWorldMessage),
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
