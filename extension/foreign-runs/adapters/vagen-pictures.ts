// The pictures of VAGEN's rollouts, which are files with fixed names: in an evaluation, images/turn_<turn>_<image>.png
// in the folder of the rollout, both numbers from 1; in training, image_<step>/images_<line>/<image>.png next to
// <step>.jsonl, both numbers from 0. Each replaces the word `[image]` in a message; the files that exist decide, not
// the URLs in the messages. Source: VAGEN of 2026-07, vision_workflow.py (_dump), utils/image_dump_actor.py.
import type { ChatMessage, ForeignEpisode, RolloutUnit } from '../adapter';
import type { SourceFolder } from '../source-folder';

const evaluated = /^(.*\/)?images\/turn_(\d{1,6})_(\d{1,6})\.(?:png|jpe?g)$/;
const trained = /^(.*\/)?image_(\d{1,12})\/images_(\d{1,9})\/(\d{1,9})\.(?:png|jpe?g)$/;

/** `[image]`, VAGEN's placeholder `<image>`, or the tokens of an image in Qwen's template. */
const placeholder = /\[image\]|<image>|<\|vision_start\|>(?:<\|image_pad\|>)*<\|vision_end\|>/g;

/** The pictures of evaluations. */
export class EvaluationPictures {
  private readonly files: ReadonlySet<string>;

  constructor(source: SourceFolder) {
    this.files = new Set(source.matching(evaluated).map(({ name }) => name));
  }

  /** Adds the pictures of a rollout whose files are in `folder`, which ends with `/` or is empty. */
  added(rollout: ForeignEpisode, folder: string): ForeignEpisode {
    let turn = 0;
    const messages = rollout.messages.map(message => {
      if (message.role !== 'user') return message;
      turn++;
      const two = (number: number): string => String(number).padStart(2, '0');
      const stems = Array.from({ length: placeholdersIn(message) }, (_, i) => `turn_${two(turn)}_${two(i + 1)}`);
      return withPictures(
        message,
        stems.map(stem => this.found(`${folder}images/${stem}`)),
      );
    });
    return { ...rollout, messages };
  }

  private found(stem: string): string | null {
    return ['png', 'jpg', 'jpeg'].map(ending => `${stem}.${ending}`).find(name => this.files.has(name)) ?? null;
  }
}

/** The pictures of training. */
export class TrainingPictures {
  /** Paths of the pictures by folder and step, then by line; in their order. */
  private readonly dumps = new Map<string, Map<number, string[]>>();

  constructor(source: SourceFolder) {
    const found = source.matching(trained).map(({ name, match }) => ({ name, match, image: Number(match[4]) }));
    found.sort((a, b) => a.image - b.image);
    for (const { name, match } of found) {
      const dump = `${match[1] ?? ''}${Number(match[2])}`;
      const lines = this.dumps.get(dump) ?? new Map<number, string[]>();
      this.dumps.set(dump, lines);
      const line = Number(match[3]);
      lines.set(line, [...(lines.get(line) ?? []), name]);
    }
  }

  /** Returns a unit whose rollouts have their pictures; the unit itself if its step has none. */
  added(unit: RolloutUnit): RolloutUnit {
    const [file] = unit.files;
    const dump = file.slice(0, file.lastIndexOf('/') + 1);
    const lines = this.dumps.get(`${dump}${unit.step}`);
    if (!lines) return unit;
    return {
      ...unit,
      // The pictures are written later than the texts: the unit is read again when there are more.
      files: [...unit.files, ...[...lines.values()].flat()],
      async *read() {
        let line = 0;
        for await (const rollout of unit.read()) {
          const pictures = lines.get(line++) ?? [];
          yield rollout && pictures.length > 0 ? inOrder(rollout, pictures) : rollout;
        }
      },
    };
  }
}

/** Gives each placeholder of a rollout the next picture. */
function inOrder(rollout: ForeignEpisode, pictures: readonly string[]): ForeignEpisode {
  let next = 0;
  const messages = rollout.messages.map(message => {
    const count = message.role === 'assistant' ? 0 : placeholdersIn(message);
    const own = Array.from({ length: count }, () => pictures[next++] ?? null);
    return withPictures(message, own);
  });
  return { ...rollout, messages };
}

const placeholdersIn = ({ content }: ChatMessage): number => content.match(placeholder)?.length ?? 0;

/** Returns a message with pictures and uniform placeholders; the message itself if there is no picture. */
const withPictures = (message: ChatMessage, pictures: (string | null)[]): ChatMessage =>
  pictures.some(picture => picture !== null)
    ? { ...message, content: message.content.replace(placeholder, '[image]'), pictures }
    : message;
