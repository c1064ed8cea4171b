import { passesByItself } from '../../client/follow-events.ts';
import { AcpError } from '../../contract/errors.ts';
import { type Feed, polling } from './feed.ts';

const intervalMs = 500;
// In the background only the number of waiting calls is shown.
const backgroundIntervalMs = 2_000;
const pageSize = 200;

/** The calls that wait for a person. */
export const waitingApprovals: Feed = polling(
  ({ store }) => (store.get().screen === 'approvals' ? intervalMs : backgroundIntervalMs),
  async ({ client, store, signal }) => {
    try {
      const { body: rows } = await client.approvals.list({ query: { take: pageSize }, signal });
      store.dispatch({ type: 'approvals', rows });
    } catch (error) {
      // Who may not see approvals can still look at runs.
      const refusal = error instanceof AcpError ? error.message : '';
      if (refusal === '' || passesByItself(error)) throw error;
      store.dispatch({ type: 'approvals-refused', refusal });
    }
    return true;
  },
);
