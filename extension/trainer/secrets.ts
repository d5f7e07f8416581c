// The keys and tokens that this process knows, and texts without them. A service, an environment or a program may repeat a key that it was
// given; what comes from them is cleared when it arrives, so that a model, its tokens and its texts stay of a piece, and what is
// written, printed or sent is cleared once more. A text without a secret is returned as it is, to the bit.
// A secret is the value of a variable: one that a configuration names, one that the editor keeps, or one whose name says so; and the
// password of an address in any variable. Messages are cut to a length: a beginning of a secret that is left before a cut is cleared too.

/** Variables named in it, with commas between, hold secrets: the editor says which it keeps. */
const namesVariable = 'RAGEN_SECRET_NAMES';

/** Shorter values are no secrets: they would be found in texts that have nothing to do with them. */
const shortest = 8;
/** The same for values of variables that nobody named, whose names alone look like that of a secret. */
const shortestGuessed = 12;
/** The same where they are letters alone. */
const shortestLetters = 20;
/** Characters of a secret's beginning that are cleared where a text was cut within it; the longest beginning that is looked for. */
const [shortestBeginning, longestBeginning] = [8, 1024];
/** The same at a text's end without a mark of a cut, where a few letters are likelier to be a word than a cut secret. */
const shortestAtEnd = 16;
/** Where a text was cut. */
const cuts = /…|\.\.\.|$/g;

/** The editor's own list, and names as tools use them. */
const telling =
  /((^|_)(API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY|KEY|TOKEN|SECRET|PAT|CREDENTIALS?)|_PWD|PASS|PASSWORD|PASSWD|PASSPHRASE)$/i;

/** No path, no address, no plain word or number. Tokens of some services (the hub's) are letters alone, small and capital ones. */
const looksRandom = (value: string): boolean =>
  value.length >= shortestGuessed &&
  !/^([./~]|\w+:\/\/|[a-z]:[\\/])/i.test(value) &&
  /[a-z]/i.test(value) &&
  (/\d/.test(value) ||
    (value.length >= shortestLetters && /^[\w-]+$/.test(value) && /[a-z][A-Z]|[A-Z]{2}[a-z]/.test(value)));

/** An address without a scheme, such as `user:password@host:5432/base`. */
const bareAddress = /^(?<user>[^\s/?#@:]*):[^\s/?#@]+@[\w.-]+(:\d+)?(\/\S*)?$/;
/** What stands before the colon of other texts of that form: `mailto:name@host`, `npm:package@1.2.3`. */
const noUser = /^(mailto|sips?|xmpp|acct|npm|jsr|workspace)$/i;

/**
 * What is to be cleared of a value that is an address with a password (of a proxy, of a database), or with a token in the user's place: the
 * password, or, where it is so short or plain that other texts may hold it, the password with the user before it. A beginning that a text was
 * cut behind is cleared from `least` characters on: the user alone is no secret.
 */
function passwordIn(value: string): { text: string; least?: number }[] {
  const user = bareAddress.exec(value)?.groups?.user;
  const address = user !== undefined && !noUser.test(user) ? `bare://${value}` : value;
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*@/i.test(address) || !URL.canParse(address)) return [];
  const { username, password, host } = new URL(address);
  const written = password || username;
  const alone = [written, ...decodedOf(written)].filter(looksRandom);
  if (alone.length > 0 || password === '') return alone.map(text => ({ text }));
  const pair = `${username}:${password}`;
  const least = username.length + 2;
  return [pair, ...decodedOf(pair)].map(text => ({ text: text.length < shortest ? `${text}@${host}` : text, least }));
}

function decodedOf(written: string): string[] {
  try {
    return [decodeURIComponent(written)];
  } catch {
    return [];
  }
}

/** Clears texts of secrets, in the forms in which they travel. */
export class Secrets {
  private readonly names = new Set<string>();
  /** What stands for each form of a secret. */
  private readonly marks = new Map<string, string>();
  private pattern: RegExp | undefined;
  /** Beginnings of the forms by their last characters, longer ones first. */
  private readonly beginnings = new Map<string, { beginning: string; mark: string }[]>();

  constructor(private readonly env: NodeJS.ProcessEnv = process.env) {
    for (const [name, given = ''] of Object.entries(env)) {
      const value = given.trim(); // a line's end, from a file, is not sent along
      if (telling.test(name) && looksRandom(value)) this.add(name, value);
      else for (const { text, least } of passwordIn(value)) this.addForms(name, text, least);
    }
    this.name(...(env[namesVariable] ?? '').split(','));
  }

  /** Says that these variables hold secrets. What is no name, is not set, or has a value too short to be one is passed over. */
  name(...names: readonly string[]): void {
    for (const name of names) {
      const value = this.env[name]?.trim() ?? '';
      if (value.length >= shortest && /\D/.test(value)) this.add(name, value);
    }
  }

  /** The same for the variables named in a configuration: values of keys that end in `_env`, at any depth. */
  nameAllIn(config: unknown, key = ''): void {
    if (typeof config === 'string' && key.endsWith('_env')) this.name(config);
    if (typeof config === 'object' && config !== null)
      for (const [inner, value] of Object.entries(config)) this.nameAllIn(value, inner);
  }

  /** The text with `[redacted NAME]` in place of each secret, and of the beginning of one where the text was cut within it. */
  text(text: string): string {
    return this.withoutBeginnings(this.uncut(text), shortestAtEnd);
  }

  /** The same for a text whose end is still to come. */
  unended(text: string): string {
    return this.withoutBeginnings(this.uncut(text), Infinity);
  }

  /** The same for the end of a stream, which may lie within a secret. */
  ended(text: string): string {
    return this.withoutBeginnings(this.uncut(text), shortestBeginning);
  }

  /** The same for all texts in a value, names of properties too; what holds none is returned itself. */
  value<T>(value: T): T {
    return this.pattern ? (this.cleared(value) as T) : value;
  }

  /** A value's JSON without secrets. */
  json(value: unknown, indent?: number): string {
    const text = JSON.stringify(value, null, indent);
    return this.pattern && text.search(this.pattern) >= 0 ? JSON.stringify(this.value(value), null, indent) : text;
  }

  /** Clears a text that comes in pieces: keeps back an end that may be the beginning of a secret. */
  stream(): SecretStream {
    return new SecretStream(this);
  }

  /** How many characters at the end of a text may be the beginning of a secret. */
  begun(text: string): number {
    let most = 0;
    for (const form of this.marks.keys())
      for (let length = Math.min(form.length - 1, text.length); length > most; length--)
        if (text.endsWith(form.slice(0, length))) most = length;
    return most;
  }

  private uncut(text: string): string {
    return this.pattern ? text.replace(this.pattern, form => this.marks.get(form)!) : text;
  }

  /** @param leastAtEnd characters of a beginning that is cleared at the text's own end */
  private withoutBeginnings(text: string, leastAtEnd: number): string {
    if (!this.pattern) return text;
    let cleared = '';
    let from = 0;
    for (const { index, 0: cut } of text.matchAll(cuts)) {
      const found = this.beginningBefore(text, from, index, cut === '' ? leastAtEnd : shortestBeginning);
      if (!found) continue;
      cleared += text.slice(from, index - found.beginning.length) + found.mark;
      from = index;
    }
    return from === 0 ? text : cleared + text.slice(from);
  }

  private beginningBefore(
    text: string,
    from: number,
    end: number,
    least: number,
  ): { beginning: string; mark: string } | undefined {
    const known = this.beginnings.get(text.slice(Math.max(from, end - shortestBeginning), end));
    return known?.find(({ beginning: { length }, beginning }) => length >= least && end - length >= from && text.startsWith(beginning, end - length)); // prettier-ignore
  }

  private add(name: string, value: string): void {
    if (this.names.has(name)) return;
    this.names.add(name);
    this.addForms(name, value);
  }

  private addForms(name: string, value: string, least = 0): void {
    const mark = `[redacted ${name}]`;
    for (const form of formsOf(value)) {
      if (this.marks.has(form)) continue;
      this.marks.set(form, mark);
      for (
        let length = Math.max(least, shortestBeginning);
        length < Math.min(form.length, longestBeginning);
        length++
      ) {
        const end = form.slice(length - shortestBeginning, length);
        const same = this.beginnings.get(end) ?? [];
        const longer = same.findIndex(other => other.beginning.length < length);
        same.splice(longer < 0 ? same.length : longer, 0, { beginning: form.slice(0, length), mark });
        this.beginnings.set(end, same);
      }
    }
    // The longest first: one secret may begin with another.
    const forms = [...this.marks.keys()].sort((a, b) => b.length - a.length);
    this.pattern = new RegExp(forms.map(form => form.replace(/[.*+?^${}()|[\]\\/-]/g, '\\$&')).join('|'), 'g');
  }

  private cleared(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (Array.isArray(value)) {
      const cleared = value.map(item => this.cleared(item));
      return cleared.some((item, i) => item !== value[i]) ? cleared : value;
    }
    if (!isPlain(value)) return value;
    const entries = Object.entries(value);
    const cleared = entries.map(([key, item]) => [this.text(key), this.cleared(item)] as const);
    return cleared.some(([key, item], i) => key !== entries[i][0] || item !== entries[i][1])
      ? Object.fromEntries(cleared)
      : value;
  }
}

/** One text that comes in pieces. */
export class SecretStream {
  private kept = '';

  constructor(private readonly secrets: Secrets) {}

  /** What can be passed on of it now. */
  take(piece: string): string {
    const text = this.secrets.unended(this.kept + piece);
    const begun = this.secrets.begun(text);
    this.kept = text.slice(text.length - begun);
    return text.slice(0, text.length - begun);
  }

  /** What was kept back. */
  rest(): string {
    const { kept } = this;
    this.kept = '';
    return this.secrets.ended(kept);
  }
}

/** A secret as it is, as JSON, URLs and HTTP headers write it, and in hexadecimal digits. */
function formsOf(secret: string): Set<string> {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const inUrls = encodeURIComponent(secret);
  const forms = new Set([secret, inJson, inJson.replaceAll('/', '\\/'), inUrls]);
  forms.add(inUrls.replace(/%../g, digits => digits.toLowerCase()));
  const bytes = Buffer.from(secret);
  forms.add(bytes.toString('hex'));
  forms.add(bytes.toString('hex').toUpperCase());
  // Base64 of a longer text (`Bearer …`, `user:…`) holds a secret at one of three shifts; characters at its ends depend on what is beside it.
  for (const encoding of ['base64', 'base64url'] as const)
    for (const shift of [0, 1, 2]) {
      const text = Buffer.concat([Buffer.alloc(shift), bytes])
        .toString(encoding)
        .replace(/=+$/, '');
      const from = Math.ceil((8 * shift) / 6);
      const to = Math.floor((8 * (shift + bytes.length)) / 6);
      if (to - from >= shortest) forms.add(text.slice(from, to));
    }
  return forms;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Those of this process. */
export const secrets = new Secrets();

/** Clears what this process prints. What is printed at once is cleared at once: whoever prints in pieces uses a stream. */
export function clearPrinted(...outputs: readonly NodeJS.WriteStream[]): void {
  for (const output of outputs) {
    const write = output.write.bind(output) as (...given: unknown[]) => boolean;
    output.write = ((text: unknown, ...rest: unknown[]) => write(typeof text === 'string' ? secrets.text(text) : text, ...rest)) as typeof output.write; // prettier-ignore
  }
}
