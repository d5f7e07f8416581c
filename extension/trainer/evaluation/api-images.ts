// Messages with pictures in the two API protocols: pictures are base64 parts of the content, between the texts that
// surround them. Messages without pictures keep their text as content, because some services read no lists of parts.
// References: platform.openai.com/docs/guides/images-vision, docs.anthropic.com/en/docs/build-with-claude/vision.
import { splitAtMarks } from '../../common/picture-mark';
import { mediaType } from '../../common/picture-type';
import type { ChatMessage } from '../../models/tokenizer/chat-template';

/** A message to an API model. A list contains texts and pictures (bytes of PNG or JPEG files) in reading order. */
export type ApiMessage = Omit<ChatMessage, 'content'> & { content: string | readonly (string | Uint8Array)[] };

/**
 * Returns messages with the pictures that the marks of their texts name (common/picture-mark.ts).
 * @param read returns the file of a picture by its name
 */
export const picturedMessages = (
  messages: readonly ChatMessage[],
  read: (name: string) => Promise<Uint8Array>,
): Promise<ApiMessage[]> =>
  Promise.all(
    messages.map(async message => {
      const parts = splitAtMarks(message.content);
      if (parts.every(part => typeof part === 'string')) return message;
      const content = await Promise.all(parts.map(async part => (typeof part === 'string' ? part : read(part.name))));
      return { ...message, content };
    }),
  );

/** Returns the text of a message, without its pictures. */
export const plainText = (content: ApiMessage['content']): string =>
  typeof content === 'string' ? content : content.filter(part => typeof part === 'string').join('');

type WireMessage = Omit<ChatMessage, 'content'> & { content: string | Record<string, unknown>[] };

/** Returns a message of OpenAI's chat completions; pictures are data URLs. */
export const completionsMessage = (message: ApiMessage): WireMessage =>
  wireMessage(message, ({ type, data }) => ({
    type: 'image_url',
    image_url: { url: `data:${type};base64,${data}` },
  }));

/** Returns a message of Anthropic's messages. */
export const anthropicMessage = (message: ApiMessage): WireMessage =>
  wireMessage(message, ({ type, data }) => ({
    type: 'image',
    source: { type: 'base64', media_type: type, data },
  }));

function wireMessage(
  { content, ...message }: ApiMessage,
  imagePart: (image: { type: string; data: string }) => Record<string, unknown>,
): WireMessage {
  if (typeof content === 'string') return { ...message, content };
  const partOf = (part: string | Uint8Array): Record<string, unknown>[] => {
    if (typeof part !== 'string') return [imagePart(encoded(part))];
    return part.trim() === '' ? [] : [{ type: 'text', text: part }]; // services refuse blank texts
  };
  return { ...message, content: content.flatMap(partOf) };
}

/** Returns the media type of a picture, PNG or JPEG, and its bytes in base64. */
function encoded(image: Uint8Array): { type: string; data: string } {
  return {
    type: mediaType(image),
    data: Buffer.from(image.buffer, image.byteOffset, image.byteLength).toString('base64'),
  };
}

/** Error texts of services whose model reads no pictures: OpenAI, DeepSeek and other servers in Rust, vLLM, llama.cpp. */
const refusals = [
  /image_url is only supported by certain models/i,
  /unknown variant [^a-z]*(image_url|image)\b/i,
  /is not a (multi-?modal|vision)\b/i,
  /at most 0 (image|multi-?modal)/i,
  /(\bnot|n't) (currently )?support (the )?(images?|vision|multi-?modal)( inputs?| content|ity)?(?=$|[^\w ]| (with|for|and|in|on)\b)/i,
  /\b(images?|vision|multi-?modal)( inputs?| content)? (is|are) not supported/i,
  /\bsupports? only text\b|\bonly supports? text\b/i,
];

/** Whether an error text says that the model reads no pictures at all, rather than that it refuses a certain picture. */
export const refusesImages = (errorText: string): boolean => refusals.some(pattern => pattern.test(errorText));
