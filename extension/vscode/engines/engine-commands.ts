// Commands for engine servers. One command connects to a server. Another command lists the saved servers. The user can
// then choose a server, and test, change or forget it, or start a new run on it.
import * as vscode from 'vscode';
import { engineText } from '../../protocol/engine-report-text';
import { registerActions } from '../command';
import type { Host } from '../host-services';
import { confirmAction, notifyInformation } from '../notifications';
import { plain } from '../plain-text';
import { showQuickPick } from '../questions';
import { trusted } from '../workspace-trust';
import { connectEngine, type Connecting } from './connect-engine';
import { EngineDocuments } from './engine-document';
import { engineLine, factsOf, type KeptEngine } from './kept-engines';
import { probeServer } from './probe-server';

export function registerEngines(context: vscode.ExtensionContext, host: Host): void {
  const documents = new EngineDocuments();
  const connecting: Connecting = { host, store: host.engines, documents };
  const commands = registerActions(host, {
    'ragen.connectEngine': async () => {
      if (trusted()) await connect(connecting);
    },
    'ragen.engines': async () => {
      if (trusted()) await manage(connecting);
    },
  });
  context.subscriptions.push(documents, commands);
}

async function connect(connecting: Connecting, edited?: KeptEngine): Promise<void> {
  const name = await connectEngine(connecting, edited);
  if (name === undefined) return;
  const newRun = vscode.l10n.t('New Run…');
  const message = vscode.l10n.t('The engine {0} is saved. New Run offers this engine in the field Engine.', name);
  void notifyInformation(message, newRun).then(chosen => {
    if (chosen === newRun) void vscode.commands.executeCommand('ragen.newRun', { engine: name });
  });
}

/** Lists the saved engines. If no engine is saved, connects to a server. */
async function manage(connecting: Connecting): Promise<void> {
  const { engines } = connecting.store;
  if (engines.length === 0) return connect(connecting);
  type Item = vscode.QuickPickItem & { engine?: KeptEngine };
  const items: Item[] = [
    ...engines.map(engine => ({
      label: plain(engine.name),
      description: plain(engine.url),
      detail: plain(engineLine(engine)),
      engine,
    })),
    { label: '', kind: vscode.QuickPickItemKind.Separator },
    { label: vscode.l10n.t('$(add) Connect to another engine…') },
  ];
  const placeHolder = vscode.l10n.t('Which engine?');
  const chosen = await showQuickPick(items, { placeHolder, matchOnDescription: true });
  if (!chosen) return;
  if (!chosen.engine) return connect(connecting);
  await act(connecting, chosen.engine);
}

async function act(connecting: Connecting, engine: KeptEngine): Promise<void> {
  const { store } = connecting;
  const { name } = engine;
  const actions: (vscode.QuickPickItem & { run(): Promise<unknown> })[] = [
    { label: vscode.l10n.t('$(play) New run on this engine…'), run: () => open(name) },
    { label: vscode.l10n.t('$(refresh) Test again'), run: () => testAgain(connecting, engine) },
    { label: vscode.l10n.t('$(edit) Change…'), run: () => connect(connecting, engine) },
    { label: vscode.l10n.t('$(trash) Forget…'), run: () => forget(connecting, engine) },
  ];
  const action = await showQuickPick(actions, { title: plain(name), placeHolder: plain(engine.url) });
  if (action && store.find(name)) await action.run();
}

const open = (name: string): Promise<unknown> =>
  Promise.resolve(vscode.commands.executeCommand('ragen.newRun', { engine: name }));

async function testAgain({ host, store, documents }: Connecting, { name, ...entry }: KeptEngine): Promise<void> {
  const report = await probeServer(host, entry, ['--critic']);
  if (!report) return;
  await documents.show(entry.url, engineText(report));
  await store.keep(name, { ...entry, facts: factsOf(report, new Date()) });
}

/**
 * Forgets an engine. Also deletes the engine's stored key if the user typed the key for this server and no other saved
 * engine uses the key.
 */
async function forget({ host, store }: Connecting, { name, keyEnv }: KeptEngine): Promise<void> {
  const choice = vscode.l10n.t('Forget');
  const question = vscode.l10n.t('Forget the engine {0}?', name);
  const detail = vscode.l10n.t(
    'Runs on this engine are not changed. A stored key stays in the secret storage if another engine uses it.',
  );
  if ((await confirmAction(question, detail, choice)) !== choice) return;
  await store.forget(name);
  const isShared = store.engines.some(engine => engine.keyEnv === keyEnv);
  const isOwn = keyEnv !== null && /^ENGINE_.*_API_KEY$/.test(keyEnv);
  if (isOwn && !isShared && host.secrets.names.includes(keyEnv)) await host.secrets.keep(keyEnv, '');
}
