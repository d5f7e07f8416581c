// The line of overrides before a run begins. The box stays until the run has begun: what is refused, by the trainer too, is said below what
// was typed, which can be mended there.
import * as vscode from 'vscode';
import { UserError } from '../protocol/user-error';
import { plain } from './plain-text';
import { overridesProblem, splitOverrides } from './start-run';

export interface OverridesQuestion {
  title: string;
  prompt: string;
  /** What stands in the box at first. */
  value?: string;
  /** An example of overrides. */
  placeholder?: string;
}

/**
 * Asks for overrides and has `start` begin a run with them. Resolves once it has begun, or the reader gave up. Rejects with what went wrong
 * where that cannot be mended in the box: nothing was typed, the reader has closed it meanwhile, or it is no mistake of his.
 */
export function startWithOverrides(
  { title, prompt, value = '', placeholder = 'trainer.total_training_steps=20 seed.train=7' }: OverridesQuestion,
  start: (overrides: string[]) => Promise<void>,
): Promise<void> {
  const box = vscode.window.createInputBox();
  box.title = plain(title);
  box.prompt = plain(prompt);
  box.value = value;
  box.placeholder = placeholder;
  box.ignoreFocusOut = true;
  const say = (problem: string | undefined) => (box.validationMessage = problem && plain(problem));
  box.onDidChangeValue(text => say(overridesProblem(text)));
  return new Promise<void>((resolve, reject) => {
    let [open, starting] = [true, false];
    const accept = async () => {
      const problem = overridesProblem(box.value);
      say(problem);
      if (problem !== undefined || starting) return;
      starting = box.busy = true;
      box.enabled = false;
      try {
        await start(splitOverrides(box.value));
        resolve();
        box.hide();
      } catch (error) {
        if (open) say((error as Error).message);
        const mendedHere = open && error instanceof UserError && box.value.trim() !== '';
        if (mendedHere) return;
        reject(error as Error);
        box.hide();
      } finally {
        starting = box.busy = false;
        box.enabled = true;
      }
    };
    box.onDidAccept(() => void accept());
    box.onDidHide(() => {
      open = false;
      box.dispose();
      if (!starting) resolve();
    });
    box.show();
  });
}
