// Compares secrets in constant time.
import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether `given`, an untrusted value of any type, equals `secret`. */
export const timingSafeEquals = (given: unknown, secret: string): boolean =>
  typeof given === 'string' && timingSafeEqual(digest(given), digest(secret));

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
