// The chat format of the tiny model (ChatML, like Qwen's), and a tokenizer of single characters for playing episodes
// before there is a vocabulary: their transcripts are the vocabulary's training corpus.
import type { ChatMessage } from '../../models/tokenizer/chat-template';
import type { PromptTokenizer } from '../rollout/prompt-tokenizer';

/** The chat_template.jinja of the tiny model. */
export const chatTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Tokens with one id each; special ones never appear in decoded text. */
export const addedTokens = [
  { content: '<|endoftext|>', special: true },
  { content: '<|im_start|>', special: true },
  { content: '<|im_end|>', special: true },
  { content: '<think>', special: false },
  { content: '</think>', special: false },
  { content: '<answer>', special: false },
  { content: '</answer>', special: false },
];

const turn = ({ role, content }: ChatMessage): string => `<|im_start|>${role}\n${content}<|im_end|>\n`;

/** The conversation as rendered by the chat template. */
export const transcript = (messages: readonly ChatMessage[]): string => messages.map(turn).join('');

export const codePoints = {
  encode: (text: string): number[] => Array.from(text, c => c.codePointAt(0)!),
  decode: (ids: readonly number[]): string => ids.map(id => String.fromCodePoint(id)).join(''),
};

/** Private-use code point that stands for `<|im_end|>`. */
export const codePointStop = 0xe000;

export const codePointTokenizer: PromptTokenizer = {
  encodePrompt: (messages, prefix) => codePoints.encode(`${transcript(messages)}<|im_start|>assistant\n${prefix}`),
  encodeContinuation: (_answer, user, prefix) =>
    codePoints.encode(`\n${turn({ role: 'user', content: user })}<|im_start|>assistant\n${prefix}`),
  encodeEnd: () => codePoints.encode('\n'),
  turnMarker: codePoints.encode('<|im_start|>')[0],
  decode: ids => codePoints.decode(ids.filter(id => id !== codePointStop)),
};
