import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Uuid } from '../../contract/schema.ts';
import { runErrors } from '../runs/runs.schema.ts';
import { BundleFrame, RunReplayRequest, RunReplayResponse } from './replays.schema.ts';

export const replayOperations = defineOperations({
  create: {
    tag: 'Runs',
    role: 'Operator',
    scope: 'RunsWrite',
    raised: [{ member: ['toolMode'], value: 'LiveTools', role: 'Admin' }],
    method: 'POST',
    path: '/api/runs/{runId}/replay',
    summary: 'Run the recorded input of a run again, to its end; LiveTools needs the role Admin',
    description:
      'Without LiveTools the recorded results answer the tool calls, so that nothing outside is touched. Agent version, model and instructions can be replaced to see what they change; the new run names the run it came from.',
    params: Type.Object({ runId: Uuid }),
    body: RunReplayRequest,
    responses: { 200: RunReplayResponse },
    errors: [
      'replay-not-supported',
      'parameter-invalid',
      'attribution-invalid',
      'run-not-found',
      'run-input-not-recorded',
      'agent-not-found',
      'version-not-found',
      'run-not-finished',
      'replay-needs-approval',
      'replay-client-tools',
      'run-canceled',
      'replay-result-missing',
      'run-recording-disabled',
      ...runErrors,
      'session-owner-required',
      'audit-unavailable',
    ],
    cli: { handWritten: true },
  },
  bundle: {
    tag: 'Runs',
    role: 'Operator',
    scope: ['RunsRead', 'AgentsRead'],
    method: 'GET',
    path: '/api/runs/{runId}/bundle',
    summary: 'Export a run tree as the lines of a run bundle, with the definitions of its agents',
    description:
      'A bundle holds what a replay without the service needs: runs, events, inputs, histories and definitions. With `redact` texts are replaced by their lengths and hashes.',
    params: Type.Object({ runId: Uuid }),
    query: Type.Object({
      redact: Type.Optional(Type.Boolean({ description: 'Marks with length and hash in place of message text' })),
    }),
    responses: {},
    stream: BundleFrame,
    errors: ['run-not-found', 'run-not-finished', 'run-recording-disabled'],
    cli: { handWritten: true },
  },
});
