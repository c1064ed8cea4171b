import type { Client } from '../client/client.ts';
import { AcpError } from '../contract/errors.ts';
import { joined } from '../text/format.ts';
import { safeLine } from '../text/text-width.ts';
import type { Request } from './state/prompt.ts';
import type { Answers } from './state/waiting-run.ts';
import type { ScreenStore } from './store.ts';
import { scoreText } from './view/run-cells.ts';

/** Starts the run that goes on with the answers. It goes on without a reader; the screen follows its log. */
const answer = async (client: Client, { waiting, decisions }: Answers): Promise<string> => {
  const leave = new AbortController();
  const { agentName: name, sessionId } = waiting;
  const body = { sessionId, approvals: [...decisions] };
  try {
    const reply = await client.runs.start({ params: { name }, body, signal: leave.signal });
    const runId = reply.headers['x-run-id'];
    if (runId === undefined) throw new AcpError('cannot-connect', 'The service did not say which run goes on.');
    return runId;
  } finally {
    leave.abort(new Error('the log is followed instead'));
  }
};

const answered = (decisions: Answers['decisions']): string => {
  const approved = decisions.filter((decision) => decision.approved).length;
  const parts = [
    approved === 0 ? '' : `approved ${approved}`,
    approved === decisions.length ? '' : `rejected ${decisions.length - approved}`,
  ];
  return `${joined(parts, ', ').replace(/^./, (first) => first.toUpperCase())}; the session goes on.`;
};

/** What requests are carried out with. */
export interface Performer {
  readonly client: Client;
  readonly store: ScreenStore;
  readonly copy: (text: string) => void;
}

const carryOut = async ({ client, store, copy }: Performer, request: Request): Promise<string> => {
  switch (request.kind) {
    case 'quit':
    case 'open':
      return '';
    case 'copy':
      // Not every terminal does as it is asked, and none says so: the id is there to be marked by hand.
      copy(request.text);
      return `${safeLine(request.text)} copied, if the terminal lets`;
    case 'cancel': {
      const { body: run } = await client.runs.cancel({ params: { runId: request.runId } });
      store.dispatch({ type: 'run', run });
      return `Canceling ${request.name}.`;
    }
    case 'cancel-job':
      await client.jobs.cancel({ params: { id: request.jobId } });
      return `Canceling the job ${request.name}.`;
    case 'score': {
      const { runId, value, comment } = request;
      const body = { kind: value.kind, value: value.value, ...(comment === '' ? {} : { comment }) };
      await client.scores.save({ params: { runId }, body });
      const { body: scores } = await client.scores.list({ params: { runId } });
      store.dispatch({ type: 'scores', runId, scores });
      return `Scored ${request.name}: ${scoreText({ ...value, textValue: null })}.`;
    }
    case 'answer': {
      const { waiting, decisions } = request.answers;
      store.dispatch({ type: 'continued', runId: waiting.runId, by: await answer(client, request.answers) });
      return answered(decisions);
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
export const perform = async (performer: Performer, request: Request): Promise<void> => {
  const { store } = performer;
  try {
    store.dispatch({ type: 'notice', text: await carryOut(performer, request), tone: 'good' });
  } catch (error) {
    if (!(error instanceof AcpError)) throw error;
    store.dispatch({ type: 'notice', text: error.message, tone: 'bad' });
  }
};
