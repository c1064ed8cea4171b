import type { Client } from '../client/client.ts';
import { AcpError } from '../contract/errors.ts';
import type { Request, ScoreValue } from './state/request.ts';
import type { ScreenStore } from './store.ts';

const scoreText = ({ kind, value }: ScoreValue): string => {
  if (kind === 'Stars') return `${value} of 5 stars`;
  return value === 1 ? 'good' : 'bad';
};

const carryOut = async (client: Client, store: ScreenStore, request: Request): Promise<string> => {
  switch (request.kind) {
    case 'quit':
      return '';
    case 'cancel': {
      const { body: run } = await client.runs.cancel({ params: { runId: request.runId } });
      store.dispatch({ type: 'run', run });
      return `Canceling ${request.name}.`;
    }
    case 'score': {
      const { runId, value, comment } = request;
      const body = { kind: value.kind, value: value.value, ...(comment === '' ? {} : { comment }) };
      await client.scores.save({ params: { runId }, body });
      return `Scored ${request.name}: ${scoreText(value)}.`;
    }
    case 'decide': {
      const { approvalId, approved, reason } = request;
      const body = { approved, ...(reason === '' ? {} : { reason }) };
      const { body: decided } = await client.approvals.decide({ params: { id: approvalId }, body });
      store.dispatch({ type: 'decided', approvalId });
      const goesOn = decided.continuationRunId === null ? '' : ` Run …${decided.continuationRunId.slice(-6)} goes on.`;
      return `${approved ? 'Approved' : 'Rejected'} ${request.toolName}.${goesOn}`;
    }
  }
};

/** Asks the service for what a key wanted; the outcome is told on the screen. */
export const perform = async (client: Client, store: ScreenStore, request: Request): Promise<void> => {
  try {
    store.dispatch({ type: 'notice', text: await carryOut(client, store, request), tone: 'good' });
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    store.dispatch({ type: 'notice', text: error.message, tone: 'bad' });
  }
};
