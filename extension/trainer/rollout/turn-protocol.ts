// The text protocol of a turn (RAGEN's ctx_manager): the user's text, the prefix of the model's response, and the
// parsing of a response into thought and actions. Pure text functions. The response tokens of an episode are always the
// sampled ids; they are never obtained by tokenising these texts.
import type { ContextMaskName } from '../../algorithms/context-mask';
import { formatTemplate, parseFormatted, type PromptFormat } from './prompt-format';
import { between, thoughtAndAnswer, withAnswerTag, type AnswerTag } from '../../common/tagged-text';
import type { ToolFormat } from '../../models/tokenizer/tool-syntax';
import { pythonFloat } from './python-float';

/**
 * The `agent_proxy` keys on which the text of a turn depends, `workbench.answer_tag`, `workbench.context_mask` and
 * `workbench.tools.format`.
 */
export interface TurnProtocol {
  enable_think: boolean;
  /** Separator between the actions of a response; written with a space on each side. */
  action_sep: string;
  /** Maximum actions per response; further actions are dropped. */
  max_actions_per_turn: number;
  /** Name of the tag that encloses an answer; `answer` by default. */
  answer_tag?: AnswerTag;
  /** Which tokens of earlier responses a chat shows; `none` by default. */
  context_mask?: ContextMaskName;
  /** How the model writes tool calls (`workbench.tools.format`); `auto` by default. */
  tool_format?: ToolFormat;
  /** The parts of an answer (`custom_envs.<tag>.prompt_format`); by default, a thought if `enable_think`, and an answer. */
  prompt_format?: PromptFormat;
}

/** Returns the turn protocol of a configuration; the result also contains all other `agent_proxy` keys. */
export const turnProtocol = <Proxy>({
  agent_proxy,
  workbench,
}: {
  agent_proxy: Proxy;
  workbench: { answer_tag: AnswerTag; context_mask: ContextMaskName; tools: { format: ToolFormat } };
}): Proxy & { answer_tag: AnswerTag; context_mask: ContextMaskName; tool_format: ToolFormat } => {
  const { answer_tag, context_mask, tools } = workbench;
  return { ...agent_proxy, answer_tag, context_mask, tool_format: tools.format };
};

interface FormattedTag {
  prompt_format?: PromptFormat | null | undefined;
}

/** Returns the turn protocol of a tag: its prompt format decides whether answers begin with a thought. */
export const tagProtocol = <Protocol extends TurnProtocol>(
  protocol: Protocol,
  { prompt_format }: FormattedTag = {},
): Protocol => (prompt_format ? { ...protocol, prompt_format, enable_think: prompt_format !== 'no_think' } : protocol);

/** Returns whether the prompts of a tag ask for a thought before the answer. */
export const asksForThoughts =
  ({ agent_proxy, custom_envs }: { agent_proxy: TurnProtocol; custom_envs: Readonly<Record<string, FormattedTag>> }) =>
  (tag: string): boolean =>
    tagProtocol(agent_proxy, custom_envs[tag]).enable_think;

/** The content of a turn's prompt. */
export interface TurnPrompt {
  /** Number of the turn, from 1. */
  turn: number;
  state: string;
  actions_left: number;
  /** True if the previous turn had no valid action, so that the prompt includes a warning. */
  warn: boolean;
  /** Response length that the prompt requests, in words. */
  max_tokens: number;
  /** Results of the previous turn's tool calls; undefined if it had none. */
  results?: readonly string[];
}

/** The result of parsing a response. */
export interface ParsedResponse {
  /** Text of the thought; null if the response does not follow the format, or if `enable_think` is false. */
  thought: string | null;
  /** Text of the answer; null if the response does not follow the format. */
  answer: string | null;
  /** Actions in the model's spelling, at most `max_actions_per_turn`. */
  actions: string[];
  /** Whether the response follows the tag's prompt format; undefined without a prompt format. */
  format_right?: boolean;
  /** The description of the state that the prompt shows; undefined if the prompt format has none. */
  observation?: string;
  /** The description of the state after the actions; undefined if the prompt format has none. */
  prediction?: string;
  /** True if a tool call cannot be read; it gets the format penalty. */
  malformed?: boolean;
  /**
   * The response in canonical form for display (RAGEN's `llm_response`); the raw text if the response does not follow
   * the format.
   */
  llm_response: string;
}

const markers = (tag: AnswerTag): string[] => [
  '<think>',
  '</think>',
  '<answer>',
  '</answer>',
  ...(tag === 'answer' ? [] : [`<${tag}>`, `</${tag}>`]),
  '<|im_start|>',
  '<|im_end|>',
];

/** Returns the prefix of every response; the prefix is part of the prompt. */
export function generationPrefix({
  enable_think,
  answer_tag = 'answer',
}: Pick<TurnProtocol, 'enable_think' | 'answer_tag'>): string {
  return enable_think ? '<think>' : `<${answer_tag}>`;
}

/** Returns the user's text of a turn. */
export const turnText = (prompt: TurnPrompt, protocol: TurnProtocol): string =>
  `\nTurn ${prompt.turn}:\n${stateText(prompt, protocol)}`;

/** Returns the state of a turn, followed by the format instructions. */
export function stateText(prompt: TurnPrompt, protocol: TurnProtocol): string {
  const warning = prompt.warn
    ? 'The last answer held no valid action, so the state has not changed. Please try again.\n'
    : '';
  return `State:\n${withAnswerTag(prompt.state, protocol.answer_tag)}\n${warning}${demandText(prompt, protocol)}`;
}

/** Returns the format instructions: remaining actions, format and maximum length of the response. */
export function demandText(
  { actions_left, max_tokens }: TurnPrompt,
  { enable_think, answer_tag: tag = 'answer', prompt_format }: TurnProtocol,
): string {
  const format = formatTemplate(prompt_format ?? (enable_think ? 'free_think' : 'no_think'), tag);
  return (
    `You have ${actions_left} actions left. ` +
    `Always output: ${format} with no extra text. Strictly follow this format. ` +
    `Max response length: ${max_tokens} words (tokens).\n`
  );
}

/** Returns the text with the reward of a finished turn. The text of the next turn follows in the same message. */
export const rewardText = (reward: number, executed: number): string => `Reward:\n${rewardValue(reward, executed)}\n`;

/** Formats a turn's reward like Python: a float, or the integer 0 if the turn executed no action. */
export const rewardValue = (reward: number, executed: number): string => (executed > 0 ? pythonFloat(reward) : '0');

/**
 * Returns a response in canonical form (RAGEN's `llm_response`), or its raw text if the response does not follow the
 * format.
 */
export function canonicalText(
  { thought, answer, raw }: { thought: string | null; answer: string | null; raw: string },
  tag: AnswerTag = 'answer',
): string {
  if (answer === null) return raw;
  return `${thought === null ? '' : `<think>${thought}</think>`}<${tag}>${answer}</${tag}>`;
}

/**
 * Parses a response that includes the generation prefix. A response that does not follow the format has no actions.
 * @param whole if true, the complete answer is one action
 */
export function parseResponse(raw: string, protocol: TurnProtocol, whole = false): ParsedResponse {
  const { enable_think, answer_tag: tag = 'answer', prompt_format } = protocol;
  if (prompt_format) return parsedByFormat(raw, { ...protocol, prompt_format }, whole);
  const both = enable_think ? thoughtAndAnswer(raw, tag) : null;
  const written = enable_think ? both?.answer : between(raw, `<${tag}>`, `</${tag}>`)?.inner;
  if (written === undefined) return { thought: null, answer: null, actions: [], llm_response: raw };
  const thought = both && withoutMarkers(both.thought, tag);
  const { answer, actions } = actionsOf(withoutMarkers(written, tag), protocol, whole);
  return { thought, answer, actions, llm_response: canonicalText({ thought, answer, raw }, tag) };
}

/** Parses a response by a prompt format. */
function parsedByFormat(
  raw: string,
  protocol: TurnProtocol & { prompt_format: PromptFormat },
  whole: boolean,
): ParsedResponse {
  const { prompt_format, answer_tag: tag = 'answer' } = protocol;
  const found = parseFormatted(raw, prompt_format, tag);
  if (!found) return { thought: null, answer: null, actions: [], format_right: false, llm_response: raw };
  const { thought, answer: written, ...described } = found;
  const { answer, actions } = actionsOf(written, protocol, whole);
  const llm_response = canonicalText({ thought, answer, raw }, tag);
  return { thought, ...described, answer, actions, format_right: true, llm_response };
}

/** Returns the actions of an answer, at most `max_actions_per_turn`, and the answer without the other actions. */
function actionsOf(
  written: string,
  { action_sep, max_actions_per_turn }: TurnProtocol,
  whole: boolean,
): { answer: string; actions: string[] } {
  const actions = (whole ? [written] : written.split(action_sep))
    .map(action => action.trim())
    .filter(action => action !== '');
  if (actions.length <= max_actions_per_turn) return { answer: written, actions };
  const first = actions.slice(0, max_actions_per_turn);
  return { answer: first.join(` ${action_sep} `), actions: first };
}

/** Returns the trimmed text between the think tags of a response; empty if the closing tag is missing. */
export function reasoningText(raw: string): string {
  return withoutMarkers(between(raw, '<think>', '</think>')?.inner ?? '', 'answer');
}

function withoutMarkers(text: string, tag: AnswerTag): string {
  return markers(tag).reduce((rest, marker) => rest.replaceAll(marker, '').trim(), text.trim());
}
