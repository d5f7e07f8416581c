// Reads and writes the setting `ragen.engines`, which contains the saved engine servers. The setting has machine scope,
// so that the settings in an opened folder cannot add a server and thereby obtain the user's API keys.
import * as vscode from 'vscode';
import { enginesIn, type EngineEntry, type KeptEngine } from './kept-engines';

const section = 'ragen.engines';

export class EngineStore implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly listener = vscode.workspace.onDidChangeConfiguration(event => {
    if (event.affectsConfiguration(section)) this.changed.fire();
  });

  get engines(): KeptEngine[] {
    return enginesIn(vscode.workspace.getConfiguration().get(section));
  }

  find(name: string): KeptEngine | undefined {
    return this.engines.find(engine => engine.name === name);
  }

  /**
   * Saves an engine under `name`. If the engine had another name, `before` is that name, and the entry of that name is
   * removed.
   */
  async keep(name: string, entry: EngineEntry, before?: string): Promise<void> {
    const { [before ?? name]: _, ...others } = this.setting();
    await this.write({ ...others, [name]: entry });
  }

  async forget(name: string): Promise<void> {
    const { [name]: _, ...others } = this.setting();
    await this.write(others);
  }

  dispose(): void {
    vscode.Disposable.from(this.changed, this.listener).dispose();
  }

  private setting(): Record<string, unknown> {
    return { ...vscode.workspace.getConfiguration().get<Record<string, unknown>>(section) };
  }

  private async write(value: Record<string, unknown>): Promise<void> {
    await vscode.workspace.getConfiguration().update(section, value, vscode.ConfigurationTarget.Global);
  }
}
