// Lines of a stream of JSON lines. They end at \n and nowhere else: Node's readline ends them at U+2028 and U+2029 too, which JSON leaves in a
// text as they are, so that a reply that quotes one would never be whole.

/** The lines of a stream of decoded text, without their ends; what is left at the stream's end is one, too. */
export async function* linesOf(stream: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const text of stream) {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== '') yield rest;
}
