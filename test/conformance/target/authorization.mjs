/** Rules of a host: no run in the session `closed`, none seen of `hidden`, and runs are listed by agent only. */
export default {
  name: 'authorization',
  runAuthorization: {
    async authorize({ action, agentName, sessionId, resource }) {
      if (sessionId === 'throws') throw new Error('The directory is away.');
      if (action === 'Start') return { allowed: sessionId !== 'closed' };
      if (action === 'List') return { allowed: agentName !== null || resource !== 'Run' };
      return { allowed: sessionId !== 'hidden' };
    },
  },
};
