import assert from 'node:assert/strict';
import type { AgentRunRequest } from '../../../src/contract/run-request.ts';
import type { AppSetup } from '../../support/app.ts';
import { eventually } from '../../support/eventually.ts';
import { tool } from '../runs/run-calls.ts';

type Flow = Readonly<Record<string, unknown>>;
export const key = '/parameters/customer';
/** What an end does not start, nothing starts. */
export const noPolls = { Scheduling: { PollInterval: '1h', MaxConcurrentJobs: 8 } } as const;

/** An agent whose runs for a customer wait until each of them is told to go on, or to fail. */
export const workshop = (flow: Flow) => {
  const calls: { readonly goOn: () => void; readonly fail: () => void }[] = [];
  const begun: string[] = [];
  const work = tool('work', (_args, { signal, runId }) => {
    begun.push(runId);
    return new Promise((resolve, reject) => {
      calls.push({ goOn: () => resolve('done'), fail: () => reject(new Error('no')) });
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  });
  return {
    begun,
    calls,
    setup: {
      tools: [work],
      script: [
        { when: { tool: 'work' }, reply: { text: 'It is done.' } },
        { reply: { toolCalls: [{ name: 'work', arguments: {} }] } },
      ],
      agents: [
        {
          name: 'helper',
          toolNames: ['work'],
          parameters: [{ name: 'customer', kind: 'Text' }],
          instructions: 'For {{customer}}.',
          flow,
        },
      ],
    } satisfies AppSetup,
  };
};
export const of = (customer: string, more: Partial<AgentRunRequest> = {}): AgentRunRequest => ({
  message: 'Hi',
  parameters: { customer },
  ...more,
});
export const begins = (begun: readonly string[], ids: readonly string[]) =>
  eventually('they are at work', () => begun.length >= ids.length).then(() => assert.deepEqual(begun, ids));
