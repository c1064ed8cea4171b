import { createOutboundHttp } from '../../providers/http/outbound.ts';

const timeoutMs = 5000;
const maxBodyBytes = 1_048_576;

/**
 * Reads JSON from the identity provider. Its address is the host's own configuration, so it may be in a private
 * network; redirects are not followed.
 */
export const createIssuerHttp = () => {
  const http = createOutboundHttp({ allowPrivate: true });
  return {
    async fetchJson(url: URL): Promise<unknown> {
      const headers = { accept: 'application/json' };
      const { status, body } = await http.request({ method: 'GET', url, headers, timeoutMs, maxBodyBytes });
      if (status !== 200) throw new Error(`The identity provider answered ${status}.`);
      return JSON.parse(Buffer.from(body).toString('utf8'));
    },
    close: () => http.close(),
  };
};
