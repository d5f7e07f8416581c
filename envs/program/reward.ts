// The reward of an episode: from the program's exit code, from a file that the program writes, or from a scorer, which is
// another program that runs when the program has ended. A file or a scorer's last line is a number, or a JSON object
// with `reward` and, if the program decides it itself, `success`.
import { readRegularText } from '../api/regular-file';
import { formatExit, Program, type ProgramExit, type ProgramOptions } from './process';

export interface Earned {
  reward: number;
  /** Whether the episode counts as solved; undefined if the reward decides. */
  success?: boolean;
}

/** Maximum bytes of a reward file. */
const maxRewardBytes = 65_536;
const remedy = 'write a number, or a JSON object with the number reward';

/** Returns the reward of an exit code: 1 for 0, otherwise 0. */
export const exitReward = ({ code }: ProgramExit): Earned => ({ reward: Number(code === 0), success: code === 0 });

/**
 * Reads a reward.
 * @param where what the text is, at the beginning of a message
 * @throws Error if the text is no reward
 */
export function parseReward(text: string, where: string): Earned {
  let value: unknown;
  try {
    value = JSON.parse(text.trim());
  } catch {
    throw new Error(`${where} is ${JSON.stringify(text.trim().slice(0, 80))}: ${remedy}`);
  }
  const { reward, success } =
    typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : { reward: value };
  const isRight = typeof reward === 'number' && Number.isFinite(reward);
  if (!isRight || !(success === undefined || typeof success === 'boolean'))
    throw new Error(`${where} is ${text.trim().slice(0, 80)}: ${remedy}`);
  return success === undefined ? { reward } : { reward, success };
}

/**
 * Reads the reward that a program has written. A program that failed and wrote nothing has the reward 0.
 * @throws Error if the file is missing although the program succeeded, is no regular file, is too large, or contains no
 * reward
 */
export function fileReward(file: string, exit: ProgramExit): Earned {
  let text: string;
  try {
    text = readRegularText(file, maxRewardBytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      throw new Error(`RAGEN_REWARD_FILE cannot be read (${(error as Error).message}): ${remedy}`);
    if (exit.code !== 0) return { reward: 0, success: false };
    throw new Error('RAGEN_REWARD_FILE was not written: write the reward to this file');
  }
  return parseReward(text, 'The content of the reward file');
}

/**
 * Runs a scorer and returns the reward in the last line of its output.
 * @throws Error if the scorer fails or takes longer than `seconds`
 */
export async function scorerReward(options: ProgramOptions, seconds: number): Promise<Earned> {
  const scorer = new Program(options);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    scorer.kill();
  }, seconds * 1000);
  try {
    const exit = await scorer.ended;
    if (late) throw new Error(`The scorer took longer than ${seconds} s: raise env_config.scorer_time_limit`);
    if (exit.code !== 0) throw new Error(`The scorer ${formatExit(exit)} (${lastLine(exit.errors) || 'no output'})`);
    return parseReward(lastLine(exit.output), "The last line of the scorer's output");
  } finally {
    clearTimeout(timer);
    scorer.kill();
  }
}

/** Returns the last line that is not blank. */
export const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1)?.trim() ?? '';
