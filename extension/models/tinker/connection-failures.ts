// Explains why a request to a server got no answer, and decides whether a later attempt may succeed. A failure is
// lasting if a later attempt cannot succeed, for example because this machine does not trust the server's certificate.
// A failure is not lasting if the server is only down. An unknown host and a failed TLS handshake can be caused by a
// restart of the server. These two failures are therefore considered lasting only if the server has never answered.
import { secrets } from '../../node/secrets';

/** An error of the network, of TLS or of undici. */
export type ConnectionError = Pick<NodeJS.ErrnoException, 'code' | 'name' | 'message'>;

const otherHost = 'ERR_TLS_CERT_ALTNAME_INVALID';
const outOfDate = new Set(['CERT_HAS_EXPIRED', 'CERT_NOT_YET_VALID']);
/**
 * Matches the error codes of TLS handshakes that the server ended, for example because the server requires a client
 * certificate.
 */
const refusedByServer = /^ERR_SSL_.*ALERT/;
/** Matches Node's error codes for certificates that this machine does not trust. */
const untrusted = /CERT|SIGNATURE|ISSUER/;
const otherProtocol = /SSL|EPROTO/;
const invalidRequest = 'UND_ERR_INVALID_ARG';

/** Returns whether a later attempt would fail too. `hasAnswered`: whether the server has ever answered a request. */
export function isLasting({ code = '' }: ConnectionError, hasAnswered: boolean): boolean {
  if (code === invalidRequest) return true;
  const isHandshake = refusedByServer.test(code) || otherProtocol.test(code);
  if (isHandshake || code === 'ENOTFOUND') return !hasAnswered;
  return untrusted.test(code);
}

/** Returns a sentence that explains why no answer arrived. The sentence contains the URL, the reason and the remedy. */
export function explainFailure(url: string, { code = '', name, message }: ConnectionError, timeoutMs: number): string {
  const { hostname } = new URL(url);
  if (code === 'ECONNREFUSED')
    return `${url} refuses connections (${code}): start the server, or correct the host and port`;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `the host ${hostname} of ${url} is not known (${code}): correct the URL, or check the network`;
  if (code === otherHost)
    return `${url} has a certificate for another host (${code}): use the host name of the certificate`;
  if (outOfDate.has(code))
    return `${url} has a certificate that is not valid now (${code}): renew the certificate, or set this machine’s clock`;
  if (refusedByServer.test(code))
    return `${url} ends the TLS handshake (${code}): see the server’s log for what it requires`;
  if (untrusted.test(code))
    return `${url} has a certificate that this machine does not trust (${code}): set NODE_EXTRA_CA_CERTS to a file with the certificate of its authority`;
  if (otherProtocol.test(code)) return `${url} does not use TLS (${code}): write http:// or another port`;
  if (code === invalidRequest)
    return `a request to ${url} cannot be sent (${secrets.text(message)}): check the URL, and the API key for characters that a header cannot have`;
  if (code === 'UND_ERR_SOCKET' || code === 'ECONNRESET')
    return `${url} closes connections (${code}): write https:// if the server uses TLS, or see the server’s log`;
  if (name === 'TimeoutError' || /TIMEOUT|TIMEDOUT/.test(code))
    return `${url} does not answer within ${timeoutMs / 1000} s: start the server, or check the host, port and firewall`;
  return `${url} cannot be reached (${secrets.text(code || message)}): start the server, or correct the URL`;
}
