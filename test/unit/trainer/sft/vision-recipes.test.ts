// Recipes of the small models that see: whether a thought names the positions of the true state, and the size of a tile.
import { expect, test } from 'vitest';
import { namesPositions, visionRecipes, visionShape } from '../../../../extension/trainer/sft/vision-recipes';

const { lake, sokoban } = visionRecipes;
const room = 'Player: (1, 2)\nBoxes: (2, 2)\nTargets: (3, 4)\n';

test.each([
  [lake, 'Me (2, 0), goal (0, 1): 2 up.', 'Player: (2, 0)\nGoal: (0, 1)\n', true],
  [lake, 'Me (2, 0), goal (0, 2): 2 up.', 'Player: (2, 0)\nGoal: (0, 1)\n', false],
  [lake, 'I guess Left.', 'Player: (2, 0)\nGoal: (0, 1)\n', undefined],
  [sokoban, 'Me (1, 2), box (2, 2): 1 down. Target (3, 4): 1 down, 2 right. Down.', room, true],
  [sokoban, 'Me (1, 2), box (2, 2): 1 down. Target (3, 3): 1 down, 1 right. Down.', room, false],
  [sokoban, 'Me (1, 2), goal (2, 2): 1 down.', room, undefined],
] as const)('%#: a thought names the positions or not', (recipe, thought, state, expected) => {
  expect(namesPositions(recipe, thought, state)).toBe(expected);
});

test.each([lake, sokoban])('a tile of the board is a merged square of patches', recipe => {
  const { vision_config, processor } = visionShape(recipe, 96);
  const { patch_size, spatial_merge_size } = vision_config as { patch_size: number; spatial_merge_size: number };
  expect(patch_size * spatial_merge_size).toBe(recipe.pixels);
  expect(processor).toMatchObject({ patch_size, min_pixels: recipe.pixels ** 2 });
});

test('the board is one window, or has a learned position for each patch', () => {
  expect(visionShape(lake, 96).vision_config).toMatchObject({ window_size: 4 * 28, fullatt_block_indexes: [0] });
  expect(visionShape(sokoban, 96).vision_config).toMatchObject({ num_position_embeddings: 12 ** 2 });
});
