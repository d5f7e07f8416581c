// The requirement on true states (`Environment.state`): in each declared form, the state is a text that stays the same
// until the next action, and asking for it does not change the episode (docs/environments/states.md).
import { plural, Skip } from './evidence';
import { Violation } from './environment-instance';
import type { RandomPlay } from './random-play';

/** Asks for the state twice in each form, before and after each action of the reference episodes. */
export async function statesPurely(play: RandomPlay): Promise<string | Skip> {
  const forms = play.create().stateForms();
  if (forms.length === 0) return new Skip('The environment declares no forms of its true state.');
  let asked = 0;
  for (const reference of play.references) {
    const instance = play.create();
    const ask = async (): Promise<void> => {
      for (const form of forms) {
        const [state, again] = [await instance.trueState(form), await instance.trueState(form)];
        if (state !== again)
          throw new Violation(
            'calls',
            `state(${form}) returns ${JSON.stringify(state.slice(0, 80))}, then ${JSON.stringify(again.slice(0, 80))} ${instance.position()}: let it depend only on the state of the episode.`,
          );
        asked++;
      }
    };
    await play.follow(instance, reference, 'An episode differs when its true state is asked for', ask);
    await ask();
  }
  return `${plural(asked, 'state')} in the ${plural(forms.length, 'form')} ${forms.join(', ')}.`;
}
