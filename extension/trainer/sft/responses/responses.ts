// The demonstrated response of each environment that ragen-small plays, by `env_type`.
import { banditResponse } from './bandit-response';
import { lakeResponse, roomResponse } from './board-responses';
import { countdownResponse } from './countdown-response';
import { cubeResponse } from './cube-response';
import { game2048Response } from './game-2048-response';
import type { Respond } from './response';
import { shopResponse } from './shop-response';
import { sudokuResponse } from './sudoku-response';

export const responses: Readonly<Record<string, Respond>> = {
  bandit: banditResponse,
  countdown: countdownResponse,
  frozen_lake: lakeResponse,
  game_2048: game2048Response,
  rubikscube: cubeResponse,
  sokoban: roomResponse,
  sudoku: sudokuResponse,
  webshop: shopResponse,
};
