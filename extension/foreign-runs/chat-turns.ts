// Splits the texts of rollouts into messages, and messages into thought and answer. Trainers store a conversation as
// text with the chat template's markers, as text whose markers were removed, so that only the role words remain as
// lines, or as a list of messages. Text without markers cannot be split exactly: a line that consists of a role word
// begins a message.
import { isRecord } from '../common/json';
import { between, thoughtAndAnswer } from '../common/tagged-text';
import type { ChatMessage } from './adapter';

/** Maximum messages of one conversation; the rest is dropped. */
export const mostMessages = 4096;

const opening = '<|im_start|>';
const closing = '<|im_end|>';

/** Returns the messages of a text that begins with the prompt. `first` is the role of a text without any marker. */
export function messagesOf(text: string, first: string): ChatMessage[] {
  if (text.includes(opening)) return markedMessages(text, first);
  return bareMessages(text, first);
}

/**
 * Returns the messages of a prompt and its completion. The prompt usually ends with the marker of the assistant's
 * message, which the completion continues.
 */
export function conversation(prompt: string, completion: string): ChatMessage[] {
  const before = messagesOf(prompt, 'user');
  const after = messagesOf(completion, 'assistant');
  if (before.at(-1)?.role === 'assistant' && before.at(-1)?.content === '') before.pop();
  return [...before, ...after].slice(0, mostMessages);
}

/** Splits a text at `<|im_start|>role`. */
function markedMessages(text: string, first: string): ChatMessage[] {
  const messages: ChatMessage[] = [];
  text.split(opening).forEach((part, i) => {
    const newline = part.indexOf('\n');
    const role = i === 0 ? first : part.slice(0, newline < 0 ? part.length : newline).trim();
    const body = i === 0 ? part : newline < 0 ? '' : part.slice(newline + 1);
    const end = body.indexOf(closing);
    const content = (end < 0 ? body : body.slice(0, end)).replace(/\n$/, '');
    if (i > 0 || content.trim() !== '') messages.push({ role, content });
  });
  return messages.slice(0, mostMessages);
}

/** Splits a text at lines that consist of a role word. A text that does not begin with a role word begins with `first`. */
function bareMessages(text: string, first: string): ChatMessage[] {
  const parts = text.split(/(?:^|\n)(system|user|assistant|tool)\n/);
  const messages: ChatMessage[] = parts[0].trim() === '' ? [] : [{ role: first, content: parts[0].replace(/\n$/, '') }];
  for (let i = 1; i < parts.length && messages.length < mostMessages; i += 2)
    messages.push({ role: parts[i], content: (parts[i + 1] ?? '').replace(/\n$/, '') });
  return messages;
}

/** Converts OpenAI-style messages; images become `[image]`, tool calls are appended as text. Invalid ones are dropped. */
export function chatMessages(value: unknown): ChatMessage[] {
  if (typeof value === 'string') return messagesOf(value, 'user');
  if (!Array.isArray(value)) return [];
  return value.slice(0, mostMessages).flatMap((each: unknown): ChatMessage[] => {
    const message = isRecord(each) ? messageOf(each) : null;
    return message ? [message] : [];
  });
}

/** Converts one OpenAI-style message; null if it has no role. */
export function messageOf(message: Record<string, unknown>): ChatMessage | null {
  const { role, content, tool_calls } = message;
  if (typeof role !== 'string') return null;
  const calls = Array.isArray(tool_calls) ? tool_calls.map(callText) : [];
  const text = [textOf(content), ...calls].filter(part => part !== '').join('\n');
  const reasoning = reasoningOf(message);
  return { role, content: text, ...(reasoning !== '' && { reasoning }) };
}

/** Returns the reasoning of a message: a field of its own (vLLM, OpenRouter), else the parts of its content. */
function reasoningOf({ reasoning_content, reasoning, content }: Record<string, unknown>): string {
  for (const field of [reasoning_content, reasoning]) if (typeof field === 'string' && field !== '') return field;
  const parts = Array.isArray(content) ? content.filter(isRecord).filter(isThinking) : [];
  return parts
    .map(({ thinking, reasoning: own, text }) => [thinking, own, text].find(each => typeof each === 'string') ?? '')
    .join('\n');
}

const isThinking = ({ type }: Record<string, unknown>): boolean => type === 'thinking' || type === 'reasoning';

/** Returns the text of a message's content: a text, or a list of parts without those of its reasoning. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .filter(part => !isRecord(part) || !isThinking(part))
    .map((part: unknown) => {
      if (typeof part === 'string') return part;
      if (!isRecord(part)) return '';
      if (typeof part['text'] === 'string') return part['text'];
      return typeof part['type'] === 'string' ? `[${part['type'].replace(/_url$/, '')}]` : '';
    })
    .join('\n');
}

function callText(call: unknown): string {
  const { function: called = call } = isRecord(call) ? call : {};
  if (!isRecord(called)) return '';
  const { name, arguments: given = '' } = called;
  const text = typeof given === 'string' ? given : JSON.stringify(given);
  return typeof name === 'string' ? `<tool_call>${name} ${text}</tool_call>` : '';
}

/**
 * Returns thought and answer of a response. Reasoning that the trainer stores separately is the thought. Otherwise the
 * thought is the text in `<think>…</think>`, and the answer is the text in `<answer>…</answer>` or, without these tags,
 * the text after the thought. Both are null if the response is empty; the thought is empty if there is only an answer.
 */
export function parsedResponse({ content, reasoning }: ChatMessage): { thought: string | null; answer: string | null } {
  const tagged = thoughtAndAnswer(content);
  if (tagged) return { thought: tagged.thought.trim(), answer: tagged.answer.trim() };
  const thinking = between(content, '<think>', '</think>');
  // Templates that end the prompt with `<think>` leave only the closing tag in the response.
  const close = thinking ? -1 : content.indexOf('</think>');
  const thought = reasoning ?? thinking?.inner ?? (close >= 0 ? content.slice(0, close) : null);
  const rest = thinking ? content.slice(thinking.end) : close >= 0 ? content.slice(close + '</think>'.length) : content;
  const answer = (between(rest, '<answer>', '</answer>')?.inner ?? rest).trim();
  if (answer === '') return { thought: thought === null ? null : thought.trim(), answer: null };
  return { thought: thought === null ? '' : thought.trim(), answer };
}
