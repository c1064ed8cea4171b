import { defineOperations } from '../../contract/operation.ts';
import { PolicyTestReport, PolicyTestRequest } from './policy-tests.schema.ts';

export const policyTestOperations = defineOperations({
  run: {
    tag: 'Policy tests',
    // Changes nothing, yet may read all of a tenant's history: more than a reader should be able to set off.
    role: 'Operator',
    scope: 'RunsRead',
    method: 'POST',
    changesNothing: true,
    path: '/api/policy/test',
    summary: 'Say what a guard, approval rule, quota or price table would have changed in recorded runs',
    description:
      'Exactly one kind of policy is given with the request, and looked at against the runs of a time range. Nothing is stored and no model is called; what could not be judged is counted by reason.',
    body: PolicyTestRequest,
    responses: { 200: PolicyTestReport },
    errors: ['run-not-allowed'],
    cli: { handWritten: true },
  },
});
