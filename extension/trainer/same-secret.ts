// Whether somebody knows a secret, found out in a time that tells nothing of how much of it was right.
import { createHash, timingSafeEqual } from 'node:crypto';

/** Whether `given`, which comes from outside and may be anything, is `secret`. */
export const isSameSecret = (given: unknown, secret: string): boolean =>
  typeof given === 'string' && timingSafeEqual(digest(given), digest(secret));

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
