// Asks questions in the editor's quick input, one per step. A question asks for a text or for a choice. The input shows
// the number of the step, and a button that goes back to the previous step.
import * as vscode from 'vscode';
import { plain } from '../plain-text';
import { createInputBox, createQuickPick } from '../questions';

/** Returned in place of an answer if the user goes back to the previous step. */
export const back = Symbol('back');

export interface Step {
  title: string;
  /** `step`: number of this step, counted from 1. `of`: total number of steps. */
  step: number;
  of: number;
}

export interface TextQuestion extends Step {
  prompt: string;
  value?: string;
  placeholder?: string;
  password?: boolean;
  /** Returns why a text is not accepted, or undefined if it is accepted. */
  problem(text: string): string | undefined;
}

/** Asks for a text. Returns undefined if the user cancels. */
export function askText(question: TextQuestion): Promise<string | typeof back | undefined> {
  const { prompt, value = '', placeholder, password = false, problem } = question;
  const box = prepare(createInputBox(), question);
  Object.assign(box, { prompt: plain(prompt), value, placeholder, password });
  const check = (): boolean => {
    const found = problem(box.value.trim());
    box.validationMessage = found && plain(found);
    return found === undefined;
  };
  return answerOf(box, answer => {
    box.onDidChangeValue(() => (box.validationMessage = undefined));
    box.onDidAccept(() => check() && answer(box.value.trim()));
  });
}

export interface Choice<T> extends vscode.QuickPickItem {
  chosen?: T;
}

/** Asks the user to choose one of several items. Returns undefined if the user cancels. */
export function askChoice<T>(
  question: Step & { placeholder: string; items: readonly Choice<T>[] },
): Promise<T | typeof back | undefined> {
  const pick = prepare(createQuickPick<Choice<T>>(), question);
  pick.items = question.items;
  pick.placeholder = question.placeholder;
  return answerOf(pick, answer => {
    pick.onDidAccept(() => {
      const [item] = pick.selectedItems;
      if (item?.chosen !== undefined) answer(item.chosen);
    });
  });
}

type Input = vscode.InputBox | vscode.QuickPick<vscode.QuickPickItem>;

function prepare<I extends Input>(input: I, { title, step, of }: Step): I {
  input.title = plain(title);
  input.step = step;
  input.totalSteps = of;
  if (step > 1) input.buttons = [vscode.QuickInputButtons.Back];
  return input;
}

function answerOf<T>(input: Input, listen: (answer: (value: T) => void) => void): Promise<T | typeof back | undefined> {
  return new Promise(resolve => {
    let answer: T | typeof back | undefined;
    const end = (value: T | typeof back): void => {
      answer = value;
      input.hide();
    };
    listen(end);
    input.onDidTriggerButton(() => end(back));
    input.onDidHide(() => {
      input.dispose();
      resolve(answer);
    });
    input.show();
  });
}
