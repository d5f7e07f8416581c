// An episode played through a server and its client equals the local episode in observations, images, rewards, flags
// and info, with both protocols.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LoadedEnvironment } from '../../../../extension/protocol/environment-link';
import type { EnvironmentProcess } from '../../../../extension/environments/client/environment-process';
import { builtIn, startServing, type Serving } from '../../../unit/environments/server/serving';

const environments = {
  frozen_lake: builtIn('frozen_lake', { success_rate: 0.8 }),
  sokoban: builtIn('sokoban', { dim_x: 6, dim_y: 6, num_boxes: 1, max_steps: 6 }),
  bandit: builtIn('bandit'),
  pictures: builtIn('sokoban', { dim_x: 6, dim_y: 6, num_boxes: 1, render_mode: 'rgb_array' }, 'pictures'),
};
const names = Object.keys(environments) as (keyof typeof environments)[];
const protocols = ['openenv', 'gym_service'] as const;

let serving: Serving;
let client: EnvironmentProcess;
let local: Map<string, LoadedEnvironment>;
let remote: Map<string, LoadedEnvironment>;

beforeAll(async () => {
  serving = await startServing();
  const { url } = await serving.serve(Object.values(environments));
  client = await serving.client();
  const loaded = await client.load(Object.values(environments));
  local = new Map(loaded.environments.map(each => [each.tag, each]));
  const specs = names.flatMap(name =>
    protocols.map(protocol => builtIn('remote', { protocol, url: `${url}/${name}` }, `${protocol} ${name}`)),
  );
  const { environments: far, error } = await client.load(specs);
  expect(error).toBeUndefined();
  remote = new Map(far.map(each => [each.tag, each]));
});
afterAll(() => serving.stop());

let episodes = 0;

interface Choices {
  seed: number;
  member: number;
  mode: 'train' | 'val';
  /** One choice per action, from 0 to 1. */
  choices: number[];
}

/**
 * Plays an episode to its end or to the last choice.
 * @param byName whether actions are sent by their names in `known`, because the protocol does not list them
 */
async function played(tag: string, { choices, ...begin }: Choices, byName = false, known?: Record<number, string>) {
  const episode = `episode ${episodes++}`;
  const [begun] = await client.reset([{ episode, tag, ...begin }]);
  expect(begun.error).toBeUndefined();
  const actions = known ?? begun.actions ?? local.get(tag)!.actions!;
  const ids = Object.keys(actions).map(Number);
  const transcript: unknown[] = [{ observation: begun.observation, images: begun.images ?? [] }];
  for (const choice of choices) {
    const id = ids[Math.floor(choice * ids.length)];
    const [{ error, outcomes, observation, images = [] }] = await client.step([
      { episode, actions: [byName ? actions[id] : id] },
    ]);
    expect(error).toBeUndefined();
    const [{ reward, terminated, truncated, info }] = outcomes;
    transcript.push({ observation, images, reward, terminated, truncated, info });
    if (terminated || truncated) break;
  }
  await client.closeEpisodes([episode]);
  return { transcript, actions };
}

describe.each(protocols)('over %s', protocol => {
  it.each(names)('episodes of %s equal local ones', async name => {
    const choices = fc.record({
      seed: fc.nat(1_000_000),
      member: fc.nat(3),
      mode: fc.constantFrom('train' as const, 'val' as const),
      choices: fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { minLength: 1, maxLength: 8 }),
    });
    await fc.assert(
      fc.asyncProperty(choices, async chosen => {
        const near = await played(name, chosen);
        const far = await played(`${protocol} ${name}`, chosen, protocol === 'gym_service', near.actions);
        expect(far.transcript).toEqual(near.transcript);
      }),
      { numRuns: 8, seed: 5 },
    );
  });
});

it("the server's instruction starts with the local one, and the actions are equal", () => {
  for (const name of names) {
    const here = local.get(name)!;
    expect(remote.get(`openenv ${name}`)!.instruction.startsWith(here.instruction)).toBe(true);
    expect(remote.get(`gym_service ${name}`)!.instruction.startsWith(here.instruction)).toBe(true);
    expect(remote.get(`openenv ${name}`)!.actions).toEqual(here.actions);
  }
});
