// The body of an HTTP answer, read with a bound: a server may send more than memory holds, or never end. The deadline is that of the
// request's signal, which ends the reading too.

/** An answer that is longer than its reader takes. */
export class BodyTooLong extends Error {
  override readonly name = 'BodyTooLong';
}

/**
 * The bytes of an answer. What comes after the bound is not read: the connection is closed.
 * @param most bytes after decoding
 * @throws BodyTooLong where it has more than `most` bytes, or the error of the request's signal
 */
export async function bodyBytes(response: Response, most: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  const reader = response.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
    length += part.value.length;
    if (length > most) {
      await reader?.cancel();
      throw new BodyTooLong(`its answer has more than ${most} bytes`);
    }
    parts.push(part.value);
  }
  return Buffer.concat(parts, length);
}

/** The text of an answer, in UTF-8. */
export const bodyText = async (response: Response, most: number): Promise<string> =>
  new TextDecoder().decode(await bodyBytes(response, most));
