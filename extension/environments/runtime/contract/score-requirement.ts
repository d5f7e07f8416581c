// The requirement on score functions: for readable, unreadable and cut answers, they return finite numbers for declared
// components, the same ones each time, and do not change the state (docs/environments/rewards.md).
import type { AnsweredEpisode, AnsweredTurn, ComponentValues } from '../../../../envs/api/rewards';
import { plural, reportsSuccess, round, Skip } from './evidence';
import { Violation, type Instance, type State, type Step } from './environment-instance';
import type { RandomPlay, Reference } from './random-play';

/** The values of one component. */
interface Range {
  least: number;
  most: number;
}

/**
 * Scores the turns and the end of every reference episode twice. Each turn is scored as a readable answer, and as one
 * without thought and answer that was cut at the length limit. Returns a sentence with the range of each component.
 */
export async function scoresPurely(play: RandomPlay): Promise<string | Skip> {
  const { scores } = play;
  const has = play.create().scoreFunctions(scores);
  if (!has) return new Skip('The environment has no score functions.');
  const ranges = new Map<string, Range>();
  let [turnsScored, episodesScored] = [0, 0];
  const note = async (instance: Instance, name: string, score: () => Promise<ComponentValues>) => {
    const [values, again] = [await score(), await score()];
    const names = Object.keys({ ...values, ...again });
    if (names.some(component => !Object.is(values[component], again[component])))
      throw new Violation(
        'calls',
        `${name} returns ${JSON.stringify(values)}, then ${JSON.stringify(again)} for the same argument ${instance.position()}: let it depend only on its argument and on the state of the episode.`,
      );
    for (const [component, value] of Object.entries(values)) {
      const range = ranges.get(component) ?? { least: value, most: value };
      ranges.set(component, { least: Math.min(range.least, value), most: Math.max(range.most, value) });
    }
  };
  for (const reference of play.references) {
    const instance = play.create();
    const turns: AnsweredTurn[] = [];
    const scoreNewest = async () => {
      const turn = turns.at(-1);
      if (!has.turn || !turn) return;
      for (const form of [turn, unreadable(turn)]) await note(instance, 'score', () => instance.score(scores, form));
      turnsScored++;
    };
    await play.follow(instance, reference, 'An episode differs when its turns are scored', async () => {
      await scoreNewest();
      turns.push(answeredTurn(reference, turns.length, instance));
    });
    await scoreNewest();
    if (!has.episode || turns.length === 0) continue;
    const episode = answeredEpisode(turns, reference.steps.at(-1)!);
    await note(instance, 'scoreEpisode', () => instance.scoreEpisode(scores, episode));
    episodesScored++;
  }
  const values = Object.keys(play.components).map(name => `${name} ${shown(ranges.get(name))}`);
  return `${plural(turnsScored, 'turn')} and ${plural(episodesScored, 'episode')} scored: ${values.join(', ')}.`;
}

const shown = (range: Range | undefined): string =>
  range ? `${round(range.least)} to ${round(range.most)}` : 'without a value';

/** Returns a turn that plays one action of a reference episode, as a model could have answered. */
function answeredTurn({ first, actions, steps }: Reference, index: number, instance: Instance): AnsweredTurn {
  const { text }: State = index === 0 ? first : steps[index - 1];
  const { reward, info } = steps[index];
  const [thought, answer] = ['I have read the state.', instance.nameOf(actions[index])];
  return {
    ...{ turn: index + 1, state: text, thought, answer, parsed: [answer], executed: [answer], reward, info },
    raw: `<think>${thought}</think><answer>${answer}</answer>`,
    finish: 'stop',
  };
}

/** Returns `turn` with an answer that does not follow the format. */
const unreadable = (turn: AnsweredTurn): AnsweredTurn => ({
  ...turn,
  ...{ raw: '<think>I have', thought: null, answer: null, parsed: [], executed: [], finish: 'length' },
});

function answeredEpisode(turns: readonly AnsweredTurn[], last: Step): AnsweredEpisode {
  const { text, over, truncated } = last;
  return { turns, final_state: text, terminated: over && !truncated, truncated, success: reportsSuccess(last) };
}
