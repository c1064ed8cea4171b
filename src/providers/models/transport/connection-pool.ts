import type { Agent } from 'undici';

// Long enough to spare a chat user the TLS handshake between turns; a server's shorter Keep-Alive hint wins.
const idleConnectionMs = 30_000;

export type ConnectionPool = ReturnType<typeof createConnectionPool>;

/** Keep-alive connections shared by all providers; undici is loaded on first use. It uses no proxy and follows no redirect. */
export const createConnectionPool = () => {
  let opening: Promise<Agent> | null = null;
  let opened: Agent | null = null;

  const open = async (): Promise<Agent> => {
    const { default: UndiciAgent } = await import('undici/lib/dispatcher/agent.js');
    // HTTP/2 multiplexes every stream over one socket, so that one slow reader would stall the others.
    opened = new UndiciAgent({ allowH2: false, pipelining: 1, keepAliveTimeout: idleConnectionMs });
    return opened;
  };

  return {
    /** At once after the first use. */
    agent(): Promise<Agent> | Agent {
      opening ??= open();
      return opened ?? opening;
    },
    async close(): Promise<void> {
      const closing = opening;
      opening = null;
      const agent = await closing;
      opened = null;
      await agent?.destroy();
    },
  };
};
