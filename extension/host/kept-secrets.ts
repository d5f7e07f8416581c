// Keys and tokens that the editor keeps: values in its secret storage, which the system's key ring guards where there is one, and of them
// nothing but the names elsewhere. Each is named as the variable by which what is started finds it (HF_TOKEN, OPENAI_API_KEY): never on a
// command line, in a file or in a log. No `vscode` here.

/** What is used of the editor's secret storage and of its memory; both outlive the window. */
export interface SecretStorage {
  get(key: string): PromiseLike<string | undefined>;
  store(key: string, value: string): PromiseLike<void>;
  delete(key: string): PromiseLike<void>;
}
export interface NameMemory {
  get(key: string, fallback: string[]): string[];
  update(key: string, names: string[]): PromiseLike<void>;
}

/** Variables that the product itself looks into. */
export const knownSecrets = [
  'HF_TOKEN',
  'OPENAI_API_KEY',
  'ANTHROPIC_API_KEY',
  'DEEPSEEK_API_KEY',
  'TOGETHER_API_KEY',
  'LEAN_SERVER_API_KEY',
];

const namesKey = 'ragen.secrets';
const keyOf = (name: string): string => `ragen.secret.${name}`;

export class KeptSecrets {
  constructor(
    private readonly storage: SecretStorage,
    private readonly memory: NameMemory,
  ) {}

  /** Names of what is kept, in order. */
  get names(): string[] {
    return this.memory.get(namesKey, []);
  }

  /** What is kept, by name. */
  async variables(): Promise<Record<string, string>> {
    const pairs = await Promise.all(this.names.map(async name => [name, await this.storage.get(keyOf(name))] as const));
    return Object.fromEntries(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined));
  }

  /** Keeps a secret in place of the one of that name; an empty one is forgotten. */
  async keep(name: string, secret: string): Promise<void> {
    const others = this.names.filter(other => other !== name);
    if (secret === '') await this.storage.delete(keyOf(name));
    else await this.storage.store(keyOf(name), secret);
    await this.memory.update(namesKey, secret === '' ? others : [...others, name].sort());
  }
}

/** Why a name is none that a key can have, in one sentence; undefined where it is one. Variables that change how programs run are none. */
export function secretNameProblem(name: string): string | undefined {
  if (!/^[A-Z_][A-Z0-9_]{0,63}$/.test(name))
    return `${name === '' ? 'The name is empty' : `${name} is no variable’s name`}: write capitals, digits and underscores, such as HF_TOKEN.`;
  if (/^(PATH|HOME|NODE_|LD_|DYLD_|ELECTRON_|VSCODE_|npm_|NPM_)/.test(name))
    return `${name} changes how programs run and is no key: set it where the editor is started.`;
  return undefined;
}

/** Why a text is no secret, in one sentence that does not repeat it; undefined where it is one, or empty. */
export const secretProblem = (secret: string): string | undefined =>
  secret === '' || /^[\x21-\x7e]+$/.test(secret)
    ? undefined
    : 'It holds a blank or a character that no key has: copy it again.';
