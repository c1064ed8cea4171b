import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Uuid } from '../../contract/schema.ts';
import { RunReplayRequest, RunReplayResponse } from './replays.schema.ts';

export const replayOperations = defineOperations({
  create: {
    tag: 'Runs',
    role: 'Operator',
    scope: 'RunsWrite',
    method: 'POST',
    path: '/api/runs/{runId}/replay',
    summary: 'Run the recorded input of a run again, to its end; LiveTools needs the role Admin',
    params: Type.Object({ runId: Uuid }),
    body: RunReplayRequest,
    responses: { 200: RunReplayResponse },
    errors: [
      'replay-not-supported',
      'parameter-invalid',
      'agent-not-compilable',
      'context-window-exceeded',
      'run-not-allowed',
      'session-owner-required',
      'run-not-found',
      'run-input-not-recorded',
      'agent-not-found',
      'version-not-found',
      'run-not-finished',
      'replay-needs-approval',
      'replay-client-tools',
      'run-canceled',
      'replay-result-missing',
      'content-filtered',
      'run-budget-exceeded',
      'run-recording-disabled',
      'provider-error',
      'provider-unavailable',
      'provider-rate-limited',
      'provider-timeout',
      'tool-failed',
      'tool-timeout',
      'draining',
      'audit-unavailable',
    ],
    cli: { handWritten: true },
  },
});
