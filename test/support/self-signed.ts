// A self-signed certificate for 127.0.0.1 in PEM format, with its key: tests of HTTPS need one, and Node.js can read
// certificates but not make them. The certificate is X.509 version 3 (RFC 5280) in DER, signed by ECDSA with SHA-256.
import { generateKeyPairSync, sign } from 'node:crypto';

/** A DER value: a tag, the length, and the content. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}
const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts);
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'));
const bits = (content: Buffer): Buffer => der(0x03, Buffer.from([0]), content);
const text = (tag: number, content: string): Buffer => der(tag, Buffer.from(content));

const ecdsaWithSha256 = sequence(oid('2a8648ce3d040302'));
const commonName = oid('550403');
const [subjectAltName, basicConstraints] = [oid('551d11'), oid('551d13')];

/** Makes a certificate that is its own authority. */
export function selfSigned(): { key: string; cert: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const name = sequence(der(0x31, sequence(commonName, text(0x0c, 'localhost'))));
  const names = sequence(text(0x82, 'localhost'), der(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = sequence(
    sequence(subjectAltName, der(0x04, names)),
    sequence(basicConstraints, der(0x01, Buffer.from([0xff])), der(0x04, sequence(der(0x01, Buffer.from([0xff]))))),
  );
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.from([1])), // serial number
    ecdsaWithSha256,
    name, // issuer
    sequence(text(0x18, '20200101000000Z'), text(0x18, '20991231235959Z')),
    name, // subject
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const certificate = sequence(body, ecdsaWithSha256, bits(sign('sha256', body, privateKey)));
  const lines = certificate.toString('base64').replace(/.{64}/g, '$&\n').trimEnd();
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
  };
}
