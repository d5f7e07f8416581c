// Checks how a function refuses its input: errors that a user can fix are UserErrors of one line.
import { expect } from 'vitest';
import { UserError } from '../../extension/common/user-error';

/** The message of the UserError that `action` throws; fails if it throws no error or another kind of error. */
export function refusalOf(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(UserError);
    const { message } = error as UserError;
    expect(message, 'one line').not.toContain('\n');
    return message;
  }
  throw new Error('the action threw no error');
}
