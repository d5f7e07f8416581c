// Draws a frame of the playback on a canvas, for exported pictures: the board (or the state's pictures or text) on the left; the
// thought, the actions and the reward on the right; a line of progress at the bottom. All frames of an episode have the
// same layout and size.
import { readBoard } from '../../../extension/common/board';
import { boardDrawing } from '../../../extension/common/board-picture';
import { actionOutcomes } from '../../../extension/run-data/action-outcomes';
import type { Episode } from '../../../extension/run-data/episode';
import { returnName } from '../../../extension/run-data/running-returns';
import { scoreText } from '../../components/role-returns';
import { formatSigned } from '../../shared/format';
import { hue } from '../../shared/run-colours';
import type { Theme } from '../../shared/theme';
import { ending } from '../reader/episode-view';
import { gameOfEpisode } from '../reader/state-view';
import { paintBoard } from './board-canvas';
import { playbackFrames, type PlaybackFrame } from './playback';

/** Size of exported pictures in pixels. */
export const movieSize = { width: 800, height: 400 };

const margin = 24;
const left = { x: margin, y: 24, width: 304, height: 304 };
const right = { x: 360, width: movieSize.width - 360 - margin };
const mono = (size: number): string => `${size}px monospace`;
/** Maximum number of characters of a text that are laid out; more do not fit into the picture. */
const longestText = 4000;
const longestAction = 100;

type Context = CanvasRenderingContext2D;

/** Decoded pictures of an episode, by their data URLs. */
export type DecodedPictures = ReadonlyMap<string, { source: CanvasImageSource; width: number; height: number }>;

/** Returns a function that draws a frame of the episode. Pictures that are not in `decoded` are left out. */
export function framePainter(
  episode: Episode,
  theme: Theme,
  decoded: DecodedPictures = new Map(),
): (context: Context, frame: number) => void {
  const frames = playbackFrames(episode);
  return (context, at) => {
    const { width, height } = movieSize;
    const frame = frames[at];
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    context.textBaseline = 'alphabetic';
    if (!paintPictures(context, frame, decoded)) paintState(context, frame, episode, theme);
    paintAnswer(context, frame, episode, theme);
    write(context, episode.id, margin, height - 24, `12px ${theme.fontFamily}`, theme.muted, left.width);
    context.fillStyle = theme.border;
    context.fillRect(0, height - 4, width, 4);
    context.fillStyle = theme.palette[hue.blue];
    context.fillRect(0, height - 4, (width * (at + 1)) / frames.length, 4);
  };
}

/** Draws the pictures of a state in a grid, each as large as fits. Returns false if the state has none. */
function paintPictures(context: Context, { pictures }: PlaybackFrame, decoded: DecodedPictures): boolean {
  const shown = pictures.flatMap(url => (url === null ? [] : (decoded.get(url) ?? [])));
  if (shown.length === 0) return false;
  const columns = Math.ceil(Math.sqrt(shown.length));
  const [room, high] = [left.width / columns, left.height / Math.ceil(shown.length / columns)];
  for (const [i, { source, width, height }] of shown.entries()) {
    const scale = Math.min(room / width, high / height);
    const [x, y] = [left.x + (i % columns) * room, left.y + Math.floor(i / columns) * high];
    context.imageSmoothingEnabled = scale < 1; // small boards stay sharp
    context.drawImage(
      source,
      x + (room - width * scale) / 2,
      y + (high - height * scale) / 2,
      width * scale,
      height * scale,
    );
  }
  return true;
}

function paintState(context: Context, { state, previous }: PlaybackFrame, episode: Episode, theme: Theme): void {
  const game = gameOfEpisode(episode);
  const board = readBoard(state, game);
  if (!board) return void paragraph(context, state, left, 13, 18, mono(13), theme.foreground);
  const drawing = boardDrawing(board, previous === null ? null : readBoard(previous, game), theme);
  const scale = Math.min(left.width / (drawing.width + 2), left.height / (drawing.height + 2), 3);
  const centre = (size: number, room: number): number => (room - size * scale) / 2;
  paintBoard(
    context,
    drawing,
    left.x + centre(drawing.width, left.width),
    left.y + centre(drawing.height, left.height),
    scale,
  );
}

function paintAnswer(context: Context, frame: PlaybackFrame, episode: Episode, theme: Theme): void {
  const { title, turn, endsEpisode, running } = frame;
  const { height } = movieSize;
  write(context, title, right.x, 40, `600 16px ${theme.fontFamily}`, theme.foreground, right.width);
  const thought = turn ? thoughtText(turn.thought) : ending(episode);
  const box = { x: right.x, y: 56, width: right.width, height: height - 56 - 104 };
  paragraph(context, thought, box, 14, 20, mono(14), theme.foreground);
  const y = height - 72;
  let x = right.x;
  for (const { name, reason } of turn ? actionOutcomes(turn, endsEpisode) : []) {
    const room = right.x + right.width - x;
    if (room < 24) break;
    x = chip(context, { text: name, isRefused: reason !== null, x, y, room }, theme);
  }
  const sums = turn
    ? `reward ${formatSigned(turn.reward)} · ${returnName(turn)} ${formatSigned(running)}`
    : episode.roles
      ? scoreText(episode)
      : `return ${formatSigned(running)}`;
  write(context, sums, right.x, height - 24, `13px ${theme.fontFamily}`, theme.muted, right.width);
}

/** Returns the thought of a turn, or a sentence if there is none. */
export const thoughtText = (thought: string | null): string =>
  thought === null ? 'The answer could not be parsed; no action was executed.' : thought || 'no thought';

/** Draws an action in a frame, struck through if it was not executed; returns where the next action begins. */
function chip(
  context: Context,
  { text, isRefused, x, y, room }: { text: string; isRefused: boolean; x: number; y: number; room: number },
  theme: Theme,
): number {
  context.font = mono(14);
  const shown = fitted(context, text.slice(0, longestAction), room - 16);
  const wide = context.measureText(shown).width;
  context.strokeStyle = isRefused ? theme.muted : theme.foreground;
  context.lineWidth = 1;
  context.setLineDash(isRefused ? [3, 2] : []);
  context.strokeRect(x + 0.5, y - 17.5, wide + 16, 24);
  context.setLineDash([]);
  context.fillStyle = isRefused ? theme.muted : theme.foreground;
  context.fillText(shown, x + 8, y);
  if (isRefused) context.fillRect(x + 8, y - 5, wide, 1);
  return x + wide + 24;
}

function write(
  context: Context,
  text: string,
  x: number,
  y: number,
  font: string,
  colour: string,
  width: number,
): void {
  context.font = font;
  context.fillStyle = colour;
  context.fillText(fitted(context, text, width), x, y);
}

/** Draws a text in lines; the last line that fits ends with an ellipsis if the text is longer than the box. */
function paragraph(
  context: Context,
  text: string,
  box: { x: number; y: number; width: number; height: number },
  ascent: number,
  lineHeight: number,
  font: string,
  colour: string,
): void {
  context.font = font;
  context.fillStyle = colour;
  const all = wrapped(text.slice(0, longestText), box.width, part => context.measureText(part).width);
  const room = Math.floor(box.height / lineHeight);
  const lines = all.slice(0, room);
  if (all.length > room) lines[room - 1] = fitted(context, `${lines[room - 1]} …`, box.width);
  lines.forEach((line, i) => context.fillText(line, box.x, box.y + ascent + i * lineHeight));
}

/** Shortens a text to a width, with an ellipsis. */
function fitted(context: Context, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  const characters = [...text];
  while (characters.length > 0 && context.measureText(`${characters.join('')}…`).width > width) characters.pop();
  return `${characters.join('')}…`;
}

/** Breaks a text into lines at blanks; a word that is wider than a line is broken within. */
export function wrapped(text: string, width: number, widthOf: (text: string) => number): string[] {
  return text.split('\n').flatMap(line => {
    const lines: string[] = [];
    let current = '';
    for (const part of line.match(/\s*\S+|\s+$/g) ?? []) {
      if (current === '' || widthOf(current + part) <= width) current += part;
      else {
        lines.push(current);
        current = part.trimStart();
      }
      for (let characters = [...current]; characters.length > 1 && widthOf(current) > width;) {
        let fits = 1;
        while (widthOf(characters.slice(0, fits + 1).join('')) <= width) fits++;
        lines.push(characters.slice(0, fits).join(''));
        characters = characters.slice(fits);
        current = characters.join('');
      }
    }
    return [...lines, current];
  });
}
