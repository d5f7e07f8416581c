// Heat maps over the pictures of a stored episode: how much the log-prob of a turn's tokens depends on each part of the
// pictures that the turn's prompt shows (models/vision/picture-attribution.ts). The stored ids are explained without
// re-tokenising, each turn in the context that the model saw.
import type { ExplainedPart, HeatMap, HeatMaps, TurnHeat } from '../../protocol/heat-maps';
import type { HeatMapRequest } from '../../protocol/inspection';
import type { AnswerTag } from '../../common/tagged-text';
import { UserError } from '../../common/user-error';
import type { AttributionMap, BareSample, ShownPicture } from '../../engine/training-samples';
import type { ChatTokenizer } from '../../models/tokenizer/chat-tokenizer';
import type { Episode, EpisodeTurn } from '../../run-data/episode';
import { answerRange, thoughtRange } from '../rollout/answer-ranges';
import type { IdRange } from '../rollout/answer-ranges';
import { passBudget } from '../run/pass-budget';
import type { InspectedRun } from './inspected-run';
import type { InspectionModel } from './inspection-model';

/**
 * Returns the turns of an episode whose heat maps are wanted.
 * @throws UserError if the episode shows no pictures or has no such turn
 */
export function mappedTurns({ id, tokens, turns }: Episode, turn: number | undefined): EpisodeTurn[] {
  if (!tokens.pictures || tokens.pictures.length === 0)
    throw new UserError(
      `heat map: the prompts of ${id} show the model no pictures: choose an episode of a vision-language model in an environment with pictures`,
    );
  const wanted = turn === undefined ? turns : turns.filter(each => each.turn === turn);
  if (wanted.length > 0) return wanted;
  throw new UserError(`heat map: ${id} has no turn ${turn}: name a turn from 1 to ${turns.length}`);
}

/**
 * Computes the heat maps of turns with the weights of a checkpoint.
 * @param onTurn called before each turn
 * @throws UserError if the model does not read pictures
 */
export async function heatMapsOf(
  run: InspectedRun,
  episode: Episode,
  turns: readonly EpisodeTurn[],
  { part = 'response' }: Pick<HeatMapRequest, 'part'>,
  { engine, checkpoint }: Pick<InspectionModel, 'engine' | 'checkpoint'>,
  onTurn: (turn: number) => void,
): Promise<HeatMaps> {
  const { rollout } = run.config.actor_rollout_ref;
  const { temperature } = episode.mode === 'val' ? rollout.val_kwargs : rollout;
  const budget = passBudget(run.config, 1, 1);
  const tokenizer = await run.tokenizer();
  const found: TurnHeat[] = [];
  for (const turn of turns) {
    onTurn(turn.turn);
    const range = explainedIds(episode, turn, part, tokenizer, run.config.workbench.answer_tag);
    const sample = explainedSample(episode, turn, range);
    if (!sample) {
      found.push({ turn: turn.turn, tokens: 0, logprob: 0, pictures: [], earlier: 0 });
      continue;
    }
    const { logprob, pictures } = await engine.attributePictures(sample, budget, temperature);
    const own = ownPictures(turn, sample.shows);
    const total = pictures.reduce((sum, map) => sum + squares(map), 0);
    const ofOwn = own.reduce((sum, i) => sum + squares(pictures[i]), 0);
    found.push({
      ...{ turn: turn.turn, tokens: range[1] - range[0], logprob },
      pictures: own.map(i => plain(pictures[i])),
      earlier: total > 0 ? Math.max(0, 1 - ofOwn / total) : 0,
    });
  }
  return { checkpoint: checkpoint.name, part, turns: found };
}

/** Returns the range of the explained tokens in the episode's tokens; empty if the turn has no such part. */
function explainedIds(
  { tokens }: Pick<Episode, 'tokens'>,
  { span: [from, to], raw }: Pick<EpisodeTurn, 'span' | 'raw'>,
  part: ExplainedPart,
  tokenizer: Pick<ChatTokenizer, 'decode'>,
  tag: AnswerTag,
): IdRange {
  if (part === 'response') return [from, to];
  const ids = tokens.ids.slice(from, to);
  const decode = (some: readonly number[]): string => tokenizer.decode(some);
  const prefix = raw.startsWith('<think>') && !decode(ids).startsWith('<think>') ? '<think>' : '';
  const [first, end] = part === 'thought' ? thoughtRange(ids, prefix, decode) : answerRange(ids, prefix, decode, tag);
  return [from + first, from + end];
}

/**
 * Returns the context of a turn up to its last explained token; undefined if no token is explained, or if the context
 * shows no picture.
 */
function explainedSample(
  { tokens: { ids, starts = [0], pictures = [] } }: Pick<Episode, 'tokens'>,
  { span }: Pick<EpisodeTurn, 'span'>,
  [first, end]: IdRange,
): (BareSample & { shows: ShownPicture[] }) | undefined {
  const from = starts.findLast(start => start <= span[0]) ?? 0;
  const shows = pictures
    .filter(({ at }) => at >= from && at < span[0])
    .map(({ at, picture }) => ({ at: at - from, picture }));
  if (first >= end || shows.length === 0) return undefined;
  const own = Int32Array.from(ids.slice(from, end));
  return { ids: own, mask: new Uint8Array(own.length).fill(1, first - from), shows };
}

/**
 * Returns which of the shown pictures are those of the turn's state: the last ones with its names. None if the prompt shows
 * the state's pictures otherwise, as a program or a memory of the workspace may.
 */
function ownPictures({ pictures = [] }: Pick<EpisodeTurn, 'pictures'>, shows: readonly ShownPicture[]): number[] {
  const first = shows.length - pictures.length;
  return pictures.every((name, i) => shows[first + i]?.picture === name) ? pictures.map((_, i) => first + i) : [];
}

const squares = ({ values }: AttributionMap): number => values.reduce((sum, x) => sum + x * x, 0);

/** A map with values that JSON can hold, rounded to four significant digits. */
const plain = ({ rows, columns, values }: AttributionMap): HeatMap => ({
  rows,
  columns,
  values: Array.from(values, x => Number(x.toPrecision(4))),
});
