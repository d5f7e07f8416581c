// What both sides read in benchmarks with pictures: PNG files, a chat that shows some of them, and the prompts and
// observations of episodes as token ids. Written to the temporary folder before the sides start.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { splitAtMarks, withMarks } from '../../extension/common/picture-mark';
import { readTokenizer } from '../../extension/models/weights/model-folder';
import type { ChatMessage } from '../../extension/models/tokenizer/chat-template';
import { decodePicture } from '../../extension/models/vision/picture-decoder';
import { drawLake } from '../../envs/frozen-lake/lake';
import { lakePicture } from '../../envs/frozen-lake/picture';
import { drawRoom } from '../../envs/sokoban/generator';
import { roomPicture } from '../../envs/sokoban/picture';
import type { EncodingSettings, PicturedIterationSettings } from './pictured-definitions';
import { visionModel } from './vision-models';

/** Token ids that show one picture, whose first token is at index `at`. */
export interface Shown {
  ids: number[];
  at: number;
  picture: string;
}

export interface PicturedWorkload {
  /** Names of the PNG files. */
  pictures: string[];
  /** A chat that shows all pictures, in the form of transformers. */
  messages: { role: string; content: { type: 'text' | 'image'; text?: string }[] }[];
  /** First prompt of each group. */
  prompts: Shown[];
  /** Observation of each episode before each further turn, [episode][turn]. */
  observations: Shown[][];
}

const system =
  'You\'re a helpful assistant. Walk over the frozen lake to the goal and keep out of the holes.\nAvailable actions:\nLeft, Down, Right, Up\nYou can take up to 10 actions in all, at most 2 per answer, separated by " || ".';
const question =
  '\n\nTurn 1:\nState:\n<image>\nYou have 10 actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> with no extra text. Strictly follow this format. Max response length: 60 words (tokens).\n';

const png = (model: EncodingSettings['model'], seed: number): Uint8Array => {
  if (model === 'tiny') {
    const lake = drawLake(4, 0.8, seed);
    return lakePicture(lake, lake.start);
  }
  return roomPicture([...drawRoom({ height: 6, width: 6, boxes: 1, searchDepth: 100 }, seed).state], 6);
};

/** Writes the files of a benchmark and the model folder, if it is missing; resolves to the content of workload.json. */
export async function picturedWorkload(s: EncodingSettings | PicturedIterationSettings): Promise<PicturedWorkload> {
  await visionModel(s.model);
  await mkdir(s.folder, { recursive: true });
  const tokenizer = readTokenizer(s.model_folder);
  let count = 0;
  const add = async (): Promise<{ name: string; width: number; height: number }> => {
    const bytes = png(s.model, ++count);
    const name = `${count}.png`;
    await writeFile(join(s.folder, name), bytes);
    const { width, height } = await decodePicture(bytes);
    return { name, width, height };
  };
  const chatPictures = [];
  for (let i = 0; i < s.pictures; i++) chatPictures.push(await add());
  const content = chatText(chatPictures);
  const episodes = 'groups' in s ? s : { groups: 0, group_size: 0, turns: 1 };
  const prompts: Shown[] = [];
  for (let group = 0; group < episodes.groups; group++) {
    const picture = await add();
    const { ids, shows } = tokenizer.shownPrompt(chatOf(chatText([picture])), '');
    prompts.push({ ids, ...shows[0] });
  }
  const observations: Shown[][] = [];
  for (let row = 0; row < episodes.groups * episodes.group_size; row++) {
    observations.push([]);
    for (let turn = 1; turn < episodes.turns; turn++) {
      const { ids, shows } = tokenizer.shownContinuation([], chatText([await add()]), '');
      observations[row].push({ ids, ...shows[0] });
    }
  }
  const messages = chatOf(content).map(({ role, content: text }) => ({
    role,
    content: splitAtMarks(text).map(part =>
      typeof part === 'string' ? { type: 'text' as const, text: part } : { type: 'image' as const },
    ),
  }));
  const workload = { pictures: chatPictures.map(({ name }) => name), messages, prompts, observations };
  await writeFile(join(s.folder, 'workload.json'), JSON.stringify(workload));
  return workload;
}

/** Returns a chat whose last message is `content`. */
export const chatOf = (content: string): ChatMessage[] => [
  { role: 'system', content: system },
  { role: 'user', content },
];

/** Returns the text of the chat's last message with the marks of its pictures. */
export const chatText = (pictures: readonly { name: string; width: number; height: number }[]): string =>
  withMarks(question.replace('<image>', '<image>\n'.repeat(pictures.length).trimEnd()), pictures);
