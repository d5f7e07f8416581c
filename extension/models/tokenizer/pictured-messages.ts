// Messages with pictures for a chat template, and the text that a rendered conversation becomes. Templates of
// vision-language models take the content of a message as a list of texts and pictures; other templates, which only know
// texts, get the image token within the text. After rendering, each image token is replaced by the tokens of its picture.
import { splitAtMarks, type MarkedPicture } from '../../common/picture-mark';
import { UserError } from '../../common/user-error';
import type { ShownPicture } from '../../engine/training-samples';
import type { PicturePrompt } from '../vision/picture-prompt';
import type { ChatMessage } from './chat-template';

type ContentPart = NonNullable<ChatMessage['parts']>[number];

/** Returns the pictures of messages, in their order. */
export const picturesOf = (messages: readonly ChatMessage[]): MarkedPicture[] =>
  messages.flatMap(({ content }) => splitAtMarks(content).filter(part => typeof part !== 'string'));

/**
 * Returns messages that the template can render. In texts, the image token loses its angle brackets, so that only
 * pictures have image tokens.
 */
export function pictured(
  messages: readonly ChatMessage[],
  { imageText, before, after }: PicturePrompt,
  knowsParts: boolean,
): ChatMessage[] {
  const plain = (text: string): string => text.replaceAll(imageText, imageText.replace(/[<>]/g, ''));
  return messages.map(message => {
    const parts = splitAtMarks(message.content);
    if (!knowsParts) {
      const texts = parts.map(part => (typeof part === 'string' ? plain(part) : before + imageText + after));
      return { ...message, content: texts.join('') };
    }
    const listed = parts.map((part): ContentPart =>
      typeof part === 'string' ? { type: 'text', text: plain(part) } : { type: 'image' },
    );
    return { ...message, parts: listed.length > 0 ? listed : [{ type: 'text', text: '' }] };
  });
}

/** Returns whether a template renders a list of texts and pictures as its content. */
export function rendersParts(render: (messages: readonly ChatMessage[]) => string, imageText: string): boolean {
  const text = (word: string): ContentPart => ({ type: 'text', text: word });
  const message = (role: ChatMessage['role'], ...parts: ContentPart[]): ChatMessage => ({ role, content: '', parts });
  try {
    const found = render([
      message('system', text('rules')),
      message('user', text('before'), { type: 'image' }, text('behind')),
      message('assistant', text('reply')),
    ]);
    const isWhole = ['rules', 'before', 'behind', 'reply'].every(word => found.includes(word));
    return isWhole && found.split(imageText).length === 2;
  } catch {
    return false;
  }
}

/**
 * Returns a rendered conversation with the tokens of its pictures.
 * @throws UserError if the template did not write one image token per picture
 */
export function expanded(
  text: string,
  pictures: readonly MarkedPicture[],
  prompt: PicturePrompt,
  folder: string,
): string {
  const pieces = text.split(prompt.imageText);
  if (pieces.length !== pictures.length + 1)
    throw new UserError(
      `${folder}: the chat template writes ${pieces.length - 1} image tokens for ${pictures.length} pictures: use the chat template of the model's family`,
    );
  return pieces.map((piece, i) => (i === 0 ? piece : prompt.expansion(pictures[i - 1]) + piece)).join('');
}

/** Returns where the ids show the pictures; `ids` encode the text that `expanded` returned. */
export function placedPictures(
  ids: readonly number[],
  pictures: readonly MarkedPicture[],
  { imageToken, tokens }: PicturePrompt,
): ShownPicture[] {
  const places = [...ids.keys()].filter(i => ids[i] === imageToken);
  let next = 0;
  const shows = pictures.map(picture => {
    const at = places[next];
    next += tokens(picture);
    return { at, picture: picture.name };
  });
  if (next !== places.length)
    throw new Error(
      `pictures: ${pictures.length} pictures have ${next} image tokens, but ${places.length} were encoded`,
    );
  return shows;
}
