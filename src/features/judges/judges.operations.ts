import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import { Uuid } from '../../contract/schema.ts';
import { JudgeRunResponse } from './judges.schema.ts';

export const judgeOperations = defineOperations({
  score: {
    tag: 'Runs',
    role: 'Operator',
    scope: 'RunsWrite',
    method: 'POST',
    path: '/api/runs/{runId}/judge',
    summary: 'Have every judge score a completed run now; scoring it again replaces their scores',
    description:
      'Judges come from modules of the host. A judge that fails is an entry of the response with its reason, and the other judges still score.',
    params: Type.Object({ runId: Uuid }),
    responses: { 200: JudgeRunResponse },
    errors: ['run-not-found', 'draining', 'emergency-stopped'],
    cli: { handWritten: true },
  },
});
