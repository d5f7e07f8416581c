// An error that the user can fix: invalid configuration, a missing folder, environment code that throws. The message is
// one sentence with location, value and remedy. It is displayed without a stack.

export class UserError extends Error {
  override readonly name = 'UserError';
}
