// The masked CRC-32C of TFRecords (tensorflow/core/lib/hash/crc32c.h): the checksum in TensorBoard event files.

/** CRC-32C (Castagnoli, reflected) of each byte value. */
const crcTable = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0x82f63b78 : 0);
  return crc >>> 0;
});

/**
 * Returns TFRecord's masked CRC. The mask is part of the format: an unmasked CRC over data that itself contains CRCs
 * detects errors less reliably.
 */
export function maskedCrc(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = crcTable[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  crc = ~crc >>> 0;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}
