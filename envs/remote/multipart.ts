// Encodes and decodes the message bodies of VAGEN's GymService: a JSON part named `data`, then one part per PNG image.
// Decoding uses the platform's parser. Encoding uses a random boundary, so that image bytes cannot be mistaken for a
// boundary.
import { randomUUID } from 'node:crypto';

export interface Message {
  data: Record<string, unknown>;
  /** Bytes of PNG or JPEG files. */
  images: Uint8Array[];
}

/** Returns the format of a picture by its first bytes; undefined if it is neither PNG nor JPEG. */
export function imageType(bytes: Uint8Array): 'png' | 'jpeg' | undefined {
  const begins = (...start: number[]): boolean => start.every((byte, i) => bytes[i] === byte);
  if (begins(0x89, 0x50, 0x4e, 0x47)) return 'png';
  return begins(0xff, 0xd8, 0xff) ? 'jpeg' : undefined;
}

/**
 * Encodes a body and returns the body and its content type. In VAGEN's protocol, a client sends the subtype
 * `form-data`, and a server sends the subtype `mixed`.
 */
export function encodeMultipart(
  { data, images }: Message,
  subtype: 'form-data' | 'mixed',
): { type: string; body: Buffer } {
  const boundary = `gym_env_${randomUUID().replaceAll('-', '')}`;
  const part = (name: string, file: string, type: string, bytes: Uint8Array) => [
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="${file}"\r\nContent-Type: ${type}\r\n\r\n`,
    ),
    bytes,
    Buffer.from('\r\n'),
  ];
  const body = Buffer.concat([
    ...part('data', 'data.json', 'application/json; charset=utf-8', Buffer.from(JSON.stringify(data))),
    ...images.flatMap((image, i) => {
      const type = imageType(image) ?? 'png';
      return part('images', `${i}.${type}`, `image/${type}`, image);
    }),
    Buffer.from(`--${boundary}--\r\n`),
  ]);
  return { type: `multipart/${subtype}; boundary="${boundary}"`, body };
}

/**
 * Decodes a body.
 * @throws Error if the body has another format; the message continues a sentence that starts with 'the body', for
 * example 'cannot be read as …'
 */
export async function decodeMultipart(type: string, body: Uint8Array): Promise<Message> {
  if (!/^multipart\/[\w-]+;/i.test(type)) throw new Error(`is ${type || 'of no content type'}, not multipart`);
  const headers = { 'content-type': type.replace(/^multipart\/[\w-]+/i, 'multipart/form-data') };
  const form = await new Response(Buffer.from(body), { headers }).formData().catch((error: Error) => {
    throw new Error(`cannot be read as multipart (${error.message})`);
  });
  const message: Message = { data: {}, images: [] };
  for (const [name, value] of form) {
    if (typeof value !== 'string' && value.type.startsWith('image/'))
      message.images.push(new Uint8Array(await value.arrayBuffer()));
    else if (name === 'data') message.data = objectOf(typeof value === 'string' ? value : await value.text());
  }
  return message;
}

function objectOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value))
    throw new Error('has a part "data" that is not a JSON object');
  return value as Record<string, unknown>;
}
