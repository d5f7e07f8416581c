// Registers the controls of the pages. Only this file imports @vscode/webview-ui-toolkit, so that replacing the toolkit
// requires changes only here. Before `registerToolkit` is called (and in tests that do not call it), the elements are
// unknown tags without behaviour.
import {
  provideVSCodeDesignSystem,
  vsCodeButton,
  vsCodeCheckbox,
  vsCodeDropdown,
  vsCodeOption,
  vsCodeTextField,
} from '@vscode/webview-ui-toolkit';

/** Defines the toolkit's elements. Called once, by the entry point of each page. */
export function registerToolkit(): void {
  provideVSCodeDesignSystem().register(
    vsCodeButton(),
    vsCodeCheckbox(),
    vsCodeDropdown(),
    vsCodeOption(),
    vsCodeTextField(),
  );
}
