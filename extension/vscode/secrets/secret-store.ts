// Stores API keys and tokens. The values are in VS Code's secret storage, which uses the system's key ring if
// available. The names are in the global state. A name is the environment variable that child processes read (HF_TOKEN,
// OPENAI_API_KEY). Values never appear on a command line, in a file or in a log. Must not import `vscode`.

/**
 * The methods of VS Code's secret storage that SecretStore uses. NameMemory has the methods of the global state that
 * SecretStore uses. The contents of both storages persist after the window closes.
 */
export interface SecretStorage {
  get(key: string): PromiseLike<string | undefined>;
  store(key: string, value: string): PromiseLike<void>;
  delete(key: string): PromiseLike<void>;
}
export interface NameMemory {
  get(key: string, fallback: string[]): string[];
  update(key: string, names: string[]): PromiseLike<void>;
}

/** Variables that the extension and its processes read. */
export const knownSecrets = [
  'HF_TOKEN',
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'DEEPSEEK_API_KEY',
  'TOGETHER_API_KEY',
  'TINKER_API_KEY',
  'LEAN_SERVER_API_KEY',
];

const namesKey = 'ragen.secrets';
const keyOf = (name: string): string => `ragen.secret.${name}`;

export class SecretStore {
  constructor(
    private readonly storage: SecretStorage,
    private readonly memory: NameMemory,
    /** Called after a secret was stored or deleted. */
    private readonly onChange: () => void = () => undefined,
  ) {}

  /** Names of the stored secrets, sorted. */
  get names(): string[] {
    return this.memory.get(namesKey, []);
  }

  /** Returns the stored secrets by name. */
  async variables(): Promise<Record<string, string>> {
    const pairs = await Promise.all(this.names.map(async name => [name, await this.storage.get(keyOf(name))] as const));
    return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined));
  }

  /** Stores a secret under a name and replaces an existing secret of this name. An empty text deletes the secret. */
  async keep(name: string, secret: string): Promise<void> {
    const others = this.names.filter(other => other !== name);
    if (secret === '') await this.storage.delete(keyOf(name));
    else await this.storage.store(keyOf(name), secret);
    await this.memory.update(namesKey, secret === '' ? others : [...others, name].sort());
    this.onChange();
  }
}

/**
 * Returns the reason why a name is invalid for a secret, in one sentence, or undefined if it is valid. Variables that
 * change how programs are executed, such as PATH, are invalid.
 */
export function secretNameProblem(name: string): string | undefined {
  if (!/^[A-Z_][A-Z0-9_]{0,63}$/.test(name))
    return `${name === '' ? 'The name is empty' : `${name} is not a variable name`}: use capital letters, digits and underscores, such as HF_TOKEN.`;
  if (/^(PATH|HOME|NODE_|LD_|DYLD_|ELECTRON_|VSCODE_|npm_|NPM_)/.test(name))
    return `${name} changes how programs run and cannot be stored as a key: set the variable in the environment from which the editor is started.`;
  return undefined;
}

/**
 * Returns the reason why a text is invalid as a secret, in one sentence that does not contain the text. Returns
 * undefined if the text is valid or empty.
 */
export const secretProblem = (secret: string): string | undefined =>
  secret === '' || /^[\x21-\x7e]+$/.test(secret)
    ? undefined
    : 'The key contains a space or a character that is not allowed: copy the key again.';
