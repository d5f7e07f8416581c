// Reads the body of an HTTP response up to a size limit, because a server may send more bytes than fit in memory. The
// request's abort signal also stops the reading, so the request's deadline covers the body.

/** A response body that exceeds the size limit. */
export class BodyTooLong extends Error {
  override readonly name = 'BodyTooLong';
}

/** A response of `fetch`, or of undici's `request`. */
interface WithBody {
  readonly body: AsyncIterable<Uint8Array> | null;
}

/**
 * Returns the bytes of a response body. Closes the connection when the limit is exceeded.
 * @param most maximum number of bytes after decoding
 * @throws BodyTooLong if the body has more than `most` bytes, or the error of the request's signal
 */
export async function bodyBytes({ body }: WithBody, most: number): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  let length = 0;
  // If an error ends this loop, JavaScript cancels the stream of the body.
  for await (const part of body ?? []) {
    length += part.length;
    if (length > most) throw new BodyTooLong(`the answer has more than ${most} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts, length);
}

/** Returns the body of a response as UTF-8 text. */
export const bodyText = async (response: WithBody, most: number): Promise<string> =>
  new TextDecoder().decode(await bodyBytes(response, most));
