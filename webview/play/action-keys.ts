// Assigns keys to actions. Actions named after a direction get the arrow keys and WASD. Digits are assigned in the
// order of the actions. Pure functions.

export interface NamedAction {
  id: number;
  name: string;
}

const directions: Record<string, readonly [arrow: string, letter: string]> = {
  up: ['ArrowUp', 'w'],
  left: ['ArrowLeft', 'a'],
  down: ['ArrowDown', 's'],
  right: ['ArrowRight', 'd'],
};

/** Returns the keys (`KeyboardEvent.key`) of each action by id; the first key is displayed. */
export function actionKeys(actions: readonly NamedAction[]): Map<number, string[]> {
  const keys = new Map<number, string[]>(actions.map(({ id }) => [id, []]));
  const taken = new Set<string>();
  for (const { id, name } of actions) {
    const names = name.toLowerCase().match(/[a-z]+/g) ?? [];
    const direction = names.find(word => Object.hasOwn(directions, word));
    for (const key of direction === undefined ? [] : directions[direction]) {
      if (taken.has(key)) continue; // another action already uses this direction
      taken.add(key);
      keys.get(id)!.push(key);
    }
  }
  actions.slice(0, 9).forEach(({ id }, i) => keys.get(id)!.push(String(i + 1)));
  return keys;
}

/** Returns what each key does, for the help of the keys: the name of its action. */
export function namedKeys(actions: readonly NamedAction[]): Record<string, { does: string }> {
  const keys = actionKeys(actions);
  return Object.fromEntries(actions.flatMap(({ id, name }) => keys.get(id)!.map(key => [key, { does: name }])));
}
