// `RAGEN: Connect to Engine…`: asks for the address and the API key of a server, tests the server, shows what it can
// do, and saves it under a name that the user chooses. A key that the user typed is stored in the editor's secret
// storage, but not before the server is saved.
import * as vscode from 'vscode';
import { defaultKeyVariable, isServerUrl, withoutSlash } from '../../common/server-url';
import { UserError } from '../../common/user-error';
import type { EngineReport } from '../../protocol/engine-report';
import { engineText } from '../../protocol/engine-report-text';
import type { Host } from '../host-services';
import { notifyError } from '../notifications';
import { plain } from '../plain-text';
import { secretNameProblem, secretProblem } from '../secrets/secret-store';
import type { EngineDocuments } from './engine-document';
import type { EngineStore } from './engine-store';
import { engineNameProblem, factsOf, freeEngineName, keyVariableFor, type KeptEngine } from './kept-engines';
import { probeServer, type ProbedServer } from './probe-server';
import { askChoice, askText, back } from './quick-steps';

export interface Connecting {
  host: Host;
  store: EngineStore;
  documents: EngineDocuments;
}

type Answer<T> = T | typeof back | undefined;
interface Key {
  keyEnv: string | null;
  newKey?: string;
}

const steps = 3;
const title = (): string => vscode.l10n.t('Connect to Engine');

/**
 * Connects to a server and saves the server. If `edited` is given, changes that saved engine instead of adding a new
 * one. Returns the name under which the server is saved, or undefined if the user cancels.
 */
export async function connectEngine(connecting: Connecting, edited?: KeptEngine): Promise<string | undefined> {
  let url = edited?.url ?? '';
  for (;;) {
    const address = await askAddress(url);
    if (address === undefined || address === back) return undefined;
    url = address;
    const key = await askKey(connecting.host, url, edited?.keyEnv ?? null);
    if (key === back) continue;
    if (key === undefined) return undefined;
    const found = await test(connecting, { url, model: edited?.url === url ? edited.model : null, ...key });
    if (found === 'again') continue;
    if (found === undefined) return undefined;
    const { report, model } = found;
    await connecting.documents.show(url, engineText(report));
    const name = await askName(connecting.store, url, edited?.name);
    if (name === back) continue;
    if (name === undefined) return undefined;
    if (key.keyEnv !== null && key.newKey !== undefined) await connecting.host.secrets.keep(key.keyEnv, key.newKey);
    const facts = factsOf(report, new Date());
    await connecting.store.keep(name, { url, model, keyEnv: key.keyEnv, facts }, edited?.name);
    return name;
  }
}

async function askAddress(value: string): Promise<Answer<string>> {
  const answer = await askText({
    ...{ title: title(), step: 1, of: steps, value, placeholder: 'https://host:8000' },
    prompt: vscode.l10n.t('URL of a server that speaks the Tinker REST API, such as SkyRL'),
    problem: text =>
      isServerUrl(text)
        ? undefined
        : vscode.l10n.t('Enter an http or https URL without user, path or query, such as https://host:8000.'),
  });
  return typeof answer === 'string' ? withoutSlash(answer) : answer;
}

/**
 * Asks which API key the server needs: none, a stored key, an environment variable, or a key that the user types now.
 */
async function askKey({ secrets }: Host, url: string, now: string | null): Promise<Answer<Key>> {
  for (;;) {
    const own = keyVariableFor(url);
    const names = [...new Set([...(now === null ? [] : [now]), ...secrets.names])];
    const chosen = await askChoice<'none' | 'type' | 'name' | { variable: string }>({
      ...{ title: title(), step: 2, of: steps },
      placeholder: vscode.l10n.t('Which API key does the server need?'),
      items: [
        { label: vscode.l10n.t('No key'), chosen: 'none' },
        {
          label: vscode.l10n.t('Enter a key…'),
          detail: vscode.l10n.t('Stored in the editor’s secret storage as {0}', own),
          chosen: 'type',
        },
        ...names.map(variable => ({
          label: variable,
          description: secrets.names.includes(variable)
            ? vscode.l10n.t('stored in the secret storage')
            : vscode.l10n.t('environment variable'),
          chosen: { variable },
        })),
        {
          label: vscode.l10n.t('Environment variable…'),
          detail: vscode.l10n.t('Variable of the environment from which the editor was started'),
          chosen: 'name',
        },
      ],
    });
    if (chosen === undefined || chosen === back) return chosen;
    if (chosen === 'none') return { keyEnv: null };
    if (typeof chosen === 'object') return { keyEnv: chosen.variable };
    const text = await askText({
      ...{ title: title(), step: 2, of: steps, password: chosen === 'type' },
      prompt:
        chosen === 'type'
          ? vscode.l10n.t('API key of {0}', url)
          : vscode.l10n.t('Name of the environment variable with the API key'),
      value: chosen === 'name' ? (now ?? defaultKeyVariable) : '',
      problem: given =>
        chosen === 'name'
          ? secretNameProblem(given)
          : given === ''
            ? vscode.l10n.t('The key is empty: paste the key, or go back and choose No key.')
            : secretProblem(given),
    });
    if (text === undefined) return undefined;
    if (text !== back) return chosen === 'type' ? { keyEnv: own, newKey: text } : { keyEnv: text };
  }
}

/**
 * Tests a server. If the server offers several models, asks the user to choose one. Returns `again` if the user goes
 * back to change the address, or undefined if the user cancels.
 */
async function test(
  { host }: Connecting,
  server: ProbedServer,
): Promise<{ report: EngineReport; model: string | null } | 'again' | undefined> {
  try {
    const first = await probeServer(host, server, ['--critic']);
    if (!first) return undefined;
    if (first.measured) return { report: first, model: server.model ?? first.measured.model };
    const model = await askModel(first);
    if (model === undefined || model === back) return model === back ? 'again' : undefined;
    const report = await probeServer(host, { ...server, model }, ['--critic']);
    return report && { report, model };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const change = vscode.l10n.t('Change…');
    return (await notifyError(error.message, change)) === change ? 'again' : undefined;
  }
}

const askModel = ({ models }: EngineReport): Promise<Answer<string>> =>
  askChoice({
    ...{ title: title(), step: 2, of: steps },
    placeholder: vscode.l10n.t('Which base model?'),
    items: models.map(({ name, max_context_length: length }) => ({
      label: plain(name),
      description: length === null ? '' : vscode.l10n.t('context of {0} tokens', length),
      chosen: name,
    })),
  });

function askName(store: EngineStore, url: string, own: string | undefined): Promise<Answer<string>> {
  const used = store.engines.map(({ name }) => name);
  return askText({
    ...{ title: title(), step: 3, of: steps, value: own ?? freeEngineName(url, used) },
    prompt: vscode.l10n.t('Name under which New Run offers this engine'),
    problem: name => engineNameProblem(name, used, own),
  });
}
