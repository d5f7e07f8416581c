// Removes from text all keys and tokens that this process knows. A service, environment or program may print a key that
// it received. Secrets are therefore removed from such output when it arrives, so that prompts, tokens and episode
// texts all contain the same redacted text. Secrets are removed again from everything that is written, printed or sent.
// Text without a secret is returned unchanged. The values of three kinds of environment variables are secrets:
// variables named in a configuration, variables stored by the editor, and variables whose names indicate a secret. In
// all other variables, passwords in URLs are secrets too. Messages may be truncated, so the start of a secret is
// removed too if it is directly before a truncation.

/**
 * Environment variable that contains names of other variables, separated by commas. The values of these variables are
 * secrets. The editor sets this variable for the secrets that it stores.
 */
const namesVariable = 'RAGEN_SECRET_NAMES';

/** Minimum length of a secret; a shorter value would match unrelated text. */
const shortest = 8;
/** Minimum length of a secret that is recognised only by the name of its variable. */
const shortestGuessed = 12;
/** Minimum length of a secret that consists of letters only and is recognised only by the name of its variable. */
const shortestLetters = 20;
/** Minimum and maximum length of a secret's start that is redacted before a truncation. */
const [minPrefix, maxPrefix] = [8, 1024];
/**
 * Minimum length of a secret's start that is redacted at the end of a text without a truncation mark. Larger than
 * `minPrefix`, because a few letters are more likely a word than a truncated secret.
 */
const shortestAtEnd = 16;
/** Positions at which a text may be truncated: an ellipsis, or the end. */
const cuts = /…|\.\.\.|$/g;

/** Matches variable names that indicate a secret: names in the editor's list, and names that are common among tools. */
const secretNames =
  /((^|_)(API_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET_KEY|KEY|TOKEN|SECRET|PAT|CREDENTIALS?)|_PWD|PASS|PASSWORD|PASSWD|PASSPHRASE)$/i;

/**
 * Whether the value may be a token: it is not a path, URL, plain word or number. Tokens of some services, such as the
 * hub, may have no digits. A value without digits may therefore be a token too, if it mixes upper and lower case and
 * has at least `shortestLetters` characters.
 */
const looksRandom = (value: string): boolean =>
  value.length >= shortestGuessed &&
  !/^([./~]|\w+:\/\/|[a-z]:[\\/])/i.test(value) &&
  /[a-z]/i.test(value) &&
  (/\d/.test(value) ||
    (value.length >= shortestLetters && /^[\w-]+$/.test(value) && /[a-z][A-Z]|[A-Z]{2}[a-z]/.test(value)));

/** An address without a scheme, such as `user:password@host:5432/base`. */
const bareAddress = /^(?<user>[^\s/?#@:]*):[^\s/?#@]+@[\w.-]+(:\d+)?(\/\S*)?$/;
/**
 * Prefixes of texts that match `bareAddress` but contain no user name and password, such as `mailto:name@host` and
 * `npm:package@1.2.3`.
 */
const noUser = /^(mailto|sips?|xmpp|acct|npm|jsr|workspace)$/i;

/**
 * Returns the parts to redact in a proxy or database address with a password, or with a token as user name. Usually,
 * the part to redact is the password. If the password is so short or plain that it may occur in other text, the part is
 * `user:password`. In this case, a truncated `user:password` is redacted only if at least `least` characters of it
 * remain. A shorter start contains only the user name, which is no secret.
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

/** Removes secrets from text, in every encoding in which they occur. */
export class Secrets {
  private readonly names = new Set<string>();
  /** Replacement text for each encoded form of each secret. */
  private readonly marks = new Map<string, string>();
  private pattern: RegExp | undefined;
  /**
   * Starts of the encoded forms. The key consists of the last `minPrefix` characters of a start; the starts with the
   * same key are sorted, longest first.
   */
  private readonly prefixes = new Map<string, { prefix: string; mark: string }[]>();

  constructor(private readonly env: NodeJS.ProcessEnv = process.env) {
    for (const [name, given = ''] of Object.entries(env)) {
      const value = given.trim(); // removes the line break of a value read from a file
      if (secretNames.test(name) && looksRandom(value)) this.add(name, value);
      else for (const { text, least } of passwordIn(value)) this.addForms(name, text, least);
    }
    this.name(...(env[namesVariable] ?? '').split(','));
  }

  /**
   * Declares that the named variables contain secrets. Ignores invalid names, unset variables and values that are too
   * short.
   */
  name(...names: readonly string[]): void {
    for (const name of names) {
      const value = this.env[name]?.trim() ?? '';
      if (value.length >= shortest && /\D/.test(value)) this.add(name, value);
    }
  }

  /** Declares that `value` is a secret, shown as `[redacted name]`. Ignores values that are too short. */
  include(name: string, value: string): void {
    if (value.length >= shortest && /\D/.test(value)) this.add(name, value);
  }

  /**
   * Declares as secrets the variables that a configuration names. The names are the values of all keys that end in
   * `_env`, at any depth.
   */
  nameAllIn(config: unknown, key = ''): void {
    if (typeof config === 'string' && key.endsWith('_env')) this.name(config);
    if (typeof config === 'object' && config !== null)
      for (const [inner, value] of Object.entries(config)) this.nameAllIn(value, Array.isArray(config) ? key : inner);
  }

  /** Replaces each secret by `[redacted NAME]`, including the start of a secret before a truncation. */
  text(text: string): string {
    return this.withoutPrefixes(this.uncut(text), shortestAtEnd);
  }

  /** Like `text`, for text that will be continued. The end of the text is not treated as a truncation. */
  unended(text: string): string {
    return this.withoutPrefixes(this.uncut(text), Infinity);
  }

  /**
   * Like `text`, for the end of a stream. The end of the text may be a truncation, so a secret's start of `minPrefix`
   * or more characters is redacted there.
   */
  ended(text: string): string {
    return this.withoutPrefixes(this.uncut(text), minPrefix);
  }

  /**
   * Like `text`, for all strings in a value, including property names. Returns the same object if it contains no
   * secret.
   */
  value<T>(value: T): T {
    return this.pattern ? (this.cleared(value) as T) : value;
  }

  /** Returns a value as JSON text without secrets. */
  json(value: unknown, indent?: number): string {
    const text = JSON.stringify(value, null, indent);
    return this.pattern && text.search(this.pattern) >= 0 ? JSON.stringify(this.value(value), null, indent) : text;
  }

  /**
   * Returns a filter for text that arrives in pieces. If the end of a piece may be the start of a secret, the filter
   * withholds it until the next piece.
   */
  stream(): SecretStream {
    return new SecretStream(this);
  }

  /** Returns the length of the part at the end of a text that may be the start of a secret. */
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

  /** @param leastAtEnd minimum length at which a prefix of a secret at the end of the text is redacted */
  private withoutPrefixes(text: string, leastAtEnd: number): string {
    if (!this.pattern) return text;
    let cleared = '';
    let from = 0;
    for (const { index, 0: cut } of text.matchAll(cuts)) {
      const found = this.prefixBefore(text, from, index, cut === '' ? leastAtEnd : minPrefix);
      if (!found) continue;
      cleared += text.slice(from, index - found.prefix.length) + found.mark;
      from = index;
    }
    return from === 0 ? text : cleared + text.slice(from);
  }

  private prefixBefore(
    text: string,
    from: number,
    end: number,
    least: number,
  ): { prefix: string; mark: string } | undefined {
    const known = this.prefixes.get(text.slice(Math.max(from, end - minPrefix), end));
    return known?.find(
      ({ prefix: { length }, prefix }) =>
        length >= least && end - length >= from && text.startsWith(prefix, end - length),
    );
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
      for (let length = Math.max(least, minPrefix); length < Math.min(form.length, maxPrefix); length++) {
        const end = form.slice(length - minPrefix, length);
        const same = this.prefixes.get(end) ?? [];
        const longer = same.findIndex(other => other.prefix.length < length);
        same.splice(longer < 0 ? same.length : longer, 0, { prefix: form.slice(0, length), mark });
        this.prefixes.set(end, same);
      }
    }
    // Longer forms are matched first, because a secret may be the start of another secret.
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

/** Filter for one text that arrives in pieces. */
export class SecretStream {
  private kept = '';

  constructor(private readonly secrets: Secrets) {}

  /** Adds a piece; returns the text that can no longer become part of a secret. */
  take(piece: string): string {
    const text = this.secrets.unended(this.kept + piece);
    const begun = this.secrets.begun(text);
    this.kept = text.slice(text.length - begun);
    return text.slice(0, text.length - begun);
  }

  /** Returns the withheld end of the text. Called after the last piece. */
  rest(): string {
    const { kept } = this;
    this.kept = '';
    return this.secrets.ended(kept);
  }
}

/**
 * Returns the forms in which a secret may occur: raw, JSON, URL-encoded, hexadecimal, and base64 as in HTTP headers.
 */
function formsOf(secret: string): Set<string> {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const inUrls = encodeURIComponent(secret);
  const forms = new Set([secret, inJson, inJson.replaceAll('/', '\\/'), inUrls]);
  forms.add(inUrls.replace(/%../g, digits => digits.toLowerCase()));
  const bytes = Buffer.from(secret);
  forms.add(bytes.toString('hex'));
  forms.add(bytes.toString('hex').toUpperCase());
  // In the base64 of a longer text (`Bearer …`, `user:…`), a secret starts at one of three bit offsets. The first and
  // last base64 characters of the secret depend on neighbouring bytes and are left out.
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

/** Secrets known to this process. */
export const secrets = new Secrets();

/**
 * Removes secrets from the output of this process. Each write is handled separately; output that is written in pieces
 * needs a `SecretStream`.
 */
export function clearPrinted(...outputs: readonly NodeJS.WriteStream[]): void {
  for (const output of outputs) {
    const write = output.write.bind(output) as (...given: unknown[]) => boolean;
    output.write = (text: unknown, ...rest: unknown[]) =>
      write(typeof text === 'string' ? secrets.text(text) : text, ...rest);
  }
}
