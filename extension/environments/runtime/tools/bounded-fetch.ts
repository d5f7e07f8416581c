// The fetch function for servers that may send without end: the body of a response ends with an error when it is larger
// than allowed, before it fills the memory.

/** Returns a fetch whose responses have bodies of at most `most` bytes. */
export const boundedFetch =
  (most: number): typeof fetch =>
  async (input, init) => {
    const response = await fetch(input, init);
    if (!response.body) return response;
    let bytes = 0;
    const counter = new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        bytes += chunk.length;
        if (bytes > most) controller.error(new Error(`the response is larger than ${most} bytes`));
        else controller.enqueue(chunk);
      },
    });
    const { status, statusText, headers } = response;
    return new Response(response.body.pipeThrough(counter), { status, statusText, headers });
  };
