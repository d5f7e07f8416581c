// The size of the pictures that an environment's states are, known from its configuration before a run starts.
// test/unit/envs/pictures.test.ts compares the sizes with the pictures of the built-in environments.
import { lakePictureSide } from '../../../envs/frozen-lake/picture';
import { spriteLakeSide } from '../../../envs/frozen-lake/sprites';
import { gridPictureSide } from '../../../envs/game-2048/picture';
import { cubePictureSize } from '../../../envs/rubikscube/picture';
import { roomPictureSize } from '../../../envs/sokoban/picture';
import { sudokuPictureSide } from '../../../envs/sudoku/picture';

export interface PictureSize {
  width: number;
  height: number;
}

/** Size of the pictures of environments whose pictures are unknown before they are played, in a plan. */
const assumed: PictureSize = { width: 512, height: 512 };

const square = (side: number): PictureSize => ({ width: side, height: side });

type Values = Readonly<Record<string, unknown>>;

/** Returns a whole number of env_config, or the environment's default. */
const count = (values: Values, key: string, otherwise: number): number =>
  typeof values[key] === 'number' ? values[key] : otherwise;

const lakeSize = (values: Values): PictureSize => {
  const sideOf = values.picture === 'sprites' ? spriteLakeSide : lakePictureSide;
  return square(sideOf(count(values, 'size', 4)));
};

/** Sizes by env_type, for env_config with `render_mode: rgb_array`. */
const sizes: Readonly<Record<string, (values: Values) => PictureSize>> = {
  frozen_lake: lakeSize,
  game_2048: values => square(gridPictureSide(count(values, 'size', 4))),
  noisy_lake: lakeSize,
  rubikscube: () => cubePictureSize,
  sokoban: values => {
    const [rows, columns] = Array.isArray(values.dim_room) ? values.dim_room.map(Number) : [6, 6];
    const [x, y] = [count(values, 'dim_x', 0), count(values, 'dim_y', 0)];
    return x > 0 && y > 0 ? roomPictureSize(x, y) : roomPictureSize(rows, columns);
  },
  sudoku: values => square(sudokuPictureSide(count(values, 'grid_size', 9))),
};

/**
 * Returns the size of the pictures of a tag's states; null if the states are texts. Whether an environment outside the
 * product shows pictures is unknown before it is played, so its pictures have an assumed size.
 * @param isBuiltIn whether an env_type is that of a built-in environment
 */
export function pictureSizeOf(
  { env_type, env_config }: { env_type: string; env_config?: Values | null },
  isBuiltIn: (env_type: string) => boolean,
): { size: PictureSize; isAssumed: boolean } | null {
  const values = env_config ?? {};
  if (Object.hasOwn(sizes, env_type))
    return values.render_mode === 'rgb_array' ? { size: sizes[env_type](values), isAssumed: false } : null;
  if (env_type !== 'remote' && isBuiltIn(env_type)) return null;
  return { size: assumed, isAssumed: true };
}
