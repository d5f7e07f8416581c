// A mistake that the user can mend: bad configuration, a missing folder, environment code that throws. The message is one
// sentence that names the place, the value and the remedy; whoever shows it shows the sentence alone, never a stack.

export class UserError extends Error {
  override readonly name = 'UserError';
}
