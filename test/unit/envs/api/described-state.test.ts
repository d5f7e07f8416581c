// Agreement of described states with true states, and the texts of true states of grid worlds.
import { describe, expect, it } from 'vitest';
import { stateAgreement } from '../../../../envs/api/rewards/described-state';
import { relativeSentences, structuredState } from '../../../../envs/api/state-text';
import frozenLake from '../../../../envs/frozen-lake';
import sokoban from '../../../../envs/sokoban';
import type { Environment, EnvironmentDefinition } from '../../../../envs/api/environment';
import type { StateForm } from '../../../../envs/api/state-forms';
import { reinterpret } from '../../../support/partial';

describe('a structured description', () => {
  const truth = '{"player": [2, 1], "box": [[2, 2], [3, 3]], "target": [[2, 3], [4, 4]]}'; // 5 facts
  it.each([
    ['exactly', truth, 1],
    ['in VAGEN’s spelling', "{'player':(2,1),'box':[(3,3),(2,2)],'target':[(2,3),(4,4)]}", 1],
    ['with one wrong place of five', truth.replace('[2, 1]', '[2, 2]'), 4 / 5],
    ['with the player only', '{"player": [2, 1]}', 2 / 6],
    ['with the player three times', '{"player": [[2, 1], [2, 1], [2, 1]]}', 2 / 8],
    ['with places that do not exist besides', truth.replace('}', ', "door": [[0, 0], [0, 1]]}'), 10 / 12],
    ['without facts', '{}', 0],
    ['as another type', '[[2, 1]]', 0],
    ['as broken JSON', '{"player": [2, 1]', 0],
    ['by null', 'null', 0],
  ])('%s', (_, text, value) => expect(stateAgreement('structured', text, truth)).toBeCloseTo(value, 12));

  it('of nested objects states a fact for each value', () => {
    const truth = '{"robot": {"at": [1, 2], "holds": "cup"}}';
    expect(stateAgreement('structured', '{"robot": {"at": [1, 2], "holds": "key"}}', truth)).toBe(0.5);
  });
});

describe('a symbolic description', () => {
  const truth = '####\n#P_#\n#_X#\n####'; // 12 walls are the background; 4 other cells
  it.each([
    ['exactly', truth, 1],
    ['with spaces and blank lines', ' # # # #\n\n#P_#\n#_X#\n####\n', 1],
    ['with the player one cell to the right', truth.replace('P_', '_P'), 2 / 4],
    ['without walls', 'P_\n_X', 0],
    ['with walls only', '####\n####\n####\n####', 0],
    ['with the first rows only', '####\n#P_#', 4 / 6],
    ['by nothing', '', 0],
  ])('%s', (_, text, value) => expect(stateAgreement('symbolic', text, truth)).toBeCloseTo(value, 12));
});

describe('the text of a true state', () => {
  it('lists the positions of things', () => {
    expect(
      structuredState(5, [
        ['player', [6]],
        ['box', [7, 12]],
        ['target', []],
      ]),
    ).toBe('{"player": [1, 1], "box": [[1, 2], [2, 2]]}');
  });

  it('says where things are, seen from the player', () => {
    expect(
      relativeSentences(5, 6, [
        ['box', [7, 12]],
        ['goal', [0]],
        ['exit', [6]],
      ]),
    ).toBe(
      'A box is in the same row and 1 column to the right, seen from the player. ' +
        'A box is 1 row below and 1 column to the right, seen from the player. ' +
        'A goal is 1 row above and 1 column to the left, seen from the player. ' +
        'A exit is at the place of the player.',
    );
  });
});

describe('the true states of built-in environments', () => {
  const open = ({ config, create }: EnvironmentDefinition, given: object) => create(config.parse(given));
  const cellsOf = (grid: string, symbols: string) =>
    grid.split('\n').flatMap((row, y) => [...row].flatMap((symbol, x) => (symbols.includes(symbol) ? [[y, x]] : [])));
  const one = (cells: number[][]) => (cells.length === 1 ? cells[0] : cells);
  const text = async (environment: Environment, form: StateForm) => environment.state!(form);
  const observed = (step: unknown) => reinterpret<{ observation: string }>(step);

  it('agree with the grid that the model sees, also after moves', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const room = open(reinterpret<EnvironmentDefinition>(sokoban), { num_boxes: 2 });
      const lake = open(reinterpret<EnvironmentDefinition>(frozenLake), {});
      let [seenRoom, seenLake] = [room, lake].map(each => observed(each.reset({ seed })));
      for (let turn = 0; turn < 6; turn++) {
        expect(await text(room, 'symbolic')).toBe(seenRoom.observation);
        expect(JSON.parse(await text(room, 'structured'))).toEqual({
          player: cellsOf(seenRoom.observation, 'PS')[0],
          box: one(cellsOf(seenRoom.observation, 'X√')),
          target: one(cellsOf(seenRoom.observation, 'OS√')),
        });
        expect(await text(lake, 'symbolic')).toBe(seenLake.observation);
        expect(JSON.parse(await text(lake, 'structured'))).toEqual({
          player: cellsOf(seenLake.observation, 'PX√')[0],
          goal: cellsOf(seenLake.observation, 'G√')[0],
        });
        const action = 1 + ((seed + turn) % 4);
        [seenRoom, seenLake] = [room, lake].map(each => observed(each.step(action)));
      }
    }
  });
});
