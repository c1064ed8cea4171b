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
    summary: 'Replay the recorded input of a run and wait for the end; LiveTools needs the role Admin',
    description:
      'Without LiveTools no tool executes: calls get their recorded results. Agent version, model and instructions can be replaced to compare their effects; the new run names its source run.',
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
    summary: 'Export a run tree as a run bundle, with the definitions of its agents',
    description:
      'A bundle holds everything that a replay without the service needs: runs, events, inputs, histories and definitions. With `redact` it holds lengths and hashes instead of texts.',
    params: Type.Object({ runId: Uuid }),
    query: Type.Object({
      redact: Type.Optional(
        Type.Boolean({ description: 'Replaces message texts with marks of their length and hash' }),
      ),
    }),
    responses: {},
    stream: BundleFrame,
    errors: ['run-not-found', 'run-not-finished', 'run-recording-disabled'],
    cli: { handWritten: true },
  },
});
