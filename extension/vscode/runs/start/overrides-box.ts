// The input box for overrides before a run starts. The box stays open until the run has started: any error, including
// an error of the trainer, is shown below the input, so that the user can correct the input.
import { UserError } from '../../../common/user-error';
import { plain } from '../../plain-text';
import { createInputBox } from '../../questions';
import { overridesProblem, splitOverrides } from './overrides-line';

export interface OverridesQuestion {
  title: string;
  prompt: string;
  /** Initial content of the box. */
  value?: string;
  /** Example overrides, shown while the box is empty. */
  placeholder?: string;
}

/**
 * Shows the box and calls `start` with the overrides. Resolves when the run has started or the user cancels. If `start`
 * throws a UserError, the box stays open so that the user can correct the input. The promise rejects instead if the
 * input is empty, if the user has closed the box in the meantime, or if `start` throws another error.
 */
export function startWithOverrides(
  { title, prompt, value = '', placeholder = 'trainer.total_training_steps=20 seed.train=7' }: OverridesQuestion,
  start: (overrides: string[]) => Promise<void>,
): Promise<void> {
  const box = createInputBox();
  box.title = plain(title);
  box.prompt = plain(prompt);
  box.value = value;
  box.placeholder = placeholder;
  const showProblem = (problem: string | undefined) => (box.validationMessage = problem && plain(problem));
  box.onDidChangeValue(text => showProblem(overridesProblem(text)));
  return new Promise<void>((resolve, reject) => {
    let [open, starting] = [true, false];
    const accept = async () => {
      const problem = overridesProblem(box.value);
      showProblem(problem);
      if (problem !== undefined || starting) return;
      starting = box.busy = true;
      box.enabled = false;
      try {
        await start(splitOverrides(box.value));
        resolve();
        box.hide();
      } catch (error) {
        if (open) showProblem((error as Error).message);
        const isCorrectable = open && error instanceof UserError && box.value.trim() !== '';
        if (isCorrectable) return;
        reject(error);
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
