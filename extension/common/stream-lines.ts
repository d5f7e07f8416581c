// Splits a stream of JSON lines at \n only. Node's readline splits at U+2028 and U+2029 too. JSON strings may contain
// U+2028 and U+2029 unescaped, and readline would split such a message in the middle of a string.

/** Yields the lines of a stream of decoded text, without line ends, including an unterminated last line. */
export async function* linesOf(stream: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of stream) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== '') yield rest;
}
