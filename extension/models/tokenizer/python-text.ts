// Text methods with Python semantics. Characters are code points. White space consists of Unicode's white space and
// U+001C to U+001F. Dates use the C locale. Source: the Python language reference, str and datetime.strftime.

/** Python's str.capitalize. */
export function capitalized(text: string): string {
  const [first = '', ...rest] = text;
  return first.toUpperCase() + rest.join('').toLowerCase();
}

/** Python's str.split; `most` is the maximum number of splits, -1 for no limit. */
export function split(text: string, separator: string | null, most: number): string[] {
  if (separator === '') throw new Error('the separator of split is empty');
  if (separator !== null) {
    const parts = text.split(separator);
    return most < 0 || parts.length <= most ? parts : [...parts.slice(0, most), parts.slice(most).join(separator)];
  }
  const words = [...text.matchAll(/[^\p{White_Space}\x1c-\x1f]+/gu)];
  const cut = most < 0 ? words.length : most;
  const rest = cut < words.length ? [text.slice(words[cut].index)] : [];
  return [...words.slice(0, cut).map(([word]) => word), ...rest];
}

/** Whether Python counts the character as white space. */
const isSpace = (c: string): boolean => /[\p{White_Space}\x1c-\x1f]/u.test(c);

/** Python's strip, lstrip and rstrip: removes `chars` (by default white space) from the selected ends. */
export function strip(text: string, chars: string | null | undefined, left: boolean, right: boolean): string {
  const letters = [...text];
  const set = typeof chars === 'string' ? new Set(chars) : null;
  const goes = (c: string): boolean => (set ? set.has(c) : isSpace(c));
  let from = 0;
  let to = letters.length;
  while (left && from < to && goes(letters[from])) from++;
  while (right && to > from && goes(letters[to - 1])) to--;
  return letters.slice(from, to).join('');
}

/** Python's strftime in the C locale. */
export function strftime(day: Date, format: string): string {
  const name = (part: Intl.DateTimeFormatOptions): string =>
    new Intl.DateTimeFormat('en-US', { ...part, timeZone: 'UTC' }).format(day);
  const two = (n: number): string => String(n).padStart(2, '0');
  const [year, month, date] = [day.getUTCFullYear(), day.getUTCMonth() + 1, day.getUTCDate()];
  const [hours, minutes, seconds] = [day.getUTCHours(), day.getUTCMinutes(), day.getUTCSeconds()].map(two);
  const parts: Record<string, string> = {
    Y: String(year),
    y: two(year % 100),
    m: two(month),
    '-m': String(month),
    d: two(date),
    '-d': String(date),
    e: String(date).padStart(2),
    B: name({ month: 'long' }),
    b: name({ month: 'short' }),
    A: name({ weekday: 'long' }),
    a: name({ weekday: 'short' }),
    H: hours,
    I: two(day.getUTCHours() % 12 || 12),
    M: minutes,
    S: seconds,
    p: day.getUTCHours() < 12 ? 'AM' : 'PM',
    F: `${year}-${two(month)}-${two(date)}`,
    T: `${hours}:${minutes}:${seconds}`,
    '%': '%',
  };
  return format.replace(/%(-?.)/gs, (directive, key: string) => {
    if (!(key in parts)) throw new Error(`strftime_now: ${directive} is not known`);
    return parts[key];
  });
}
