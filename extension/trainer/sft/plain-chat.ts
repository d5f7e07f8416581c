// The chat format of the tiny model (ChatML, like Qwen's), and a tokenizer with one token per character. The tokenizer
// is used to play episodes before a vocabulary exists; the vocabulary is then trained on the transcripts of these
// episodes.
import { nextMessages, type ChatMessage } from '../../models/tokenizer/chat-template';
import type { PromptTokenizer } from '../rollout/prompt-tokenizer';

/** Chat template of the tiny model, the content of chat_template.jinja. */
export const chatTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** Chat template of a model that reads pictures: like `chatTemplate`, with contents that are lists of texts and pictures. */
export const pictureTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' }}" +
  '{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}' +
  "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% elif part.type == 'text' %}{{ part.text }}{% endif %}" +
  "{% endfor %}{% endif %}{{ '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/** The tokens of pictures in prompts; added to `addedTokens` for a model that reads pictures. */
export const pictureTokens = ['<|vision_start|>', '<|vision_end|>', '<|image_pad|>'].map(content => ({
  content,
  special: true,
}));

/** Tokens that are never split. Special tokens never appear in decoded text. */
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

/** Returns a conversation as the chat template renders it. */
export const transcript = (messages: readonly ChatMessage[]): string => messages.map(turn).join('');

export const codePoints = {
  encode: (text: string): number[] => Array.from(text, c => c.codePointAt(0)!),
  decode: (ids: readonly number[]): string => ids.map(id => String.fromCodePoint(id)).join(''),
};

/** Private-use code point that represents `<|im_end|>`. */
export const codePointStop = 0xe000;

export const codePointTokenizer: PromptTokenizer = {
  encodePrompt: (messages, prefix) => codePoints.encode(`${transcript(messages)}<|im_start|>assistant\n${prefix}`),
  encodeContinuation: (_answer, next, prefix) =>
    codePoints.encode(`\n${transcript(nextMessages(next))}<|im_start|>assistant\n${prefix}`),
  encodeEnd: () => codePoints.encode('\n'),
  turnMarker: codePoints.encode('<|im_start|>')[0],
  decode: ids => codePoints.decode(ids.filter(id => id !== codePointStop)),
};
