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
    summary: 'Show what a guard, approval rule, quota or price table would have changed in recorded runs',
    description:
      'The request contains exactly one kind of policy, which is applied to the runs of a time range. Nothing is stored and no model is called; data that cannot be evaluated is counted by reason.',
    body: PolicyTestRequest,
    responses: { 200: PolicyTestReport },
    errors: ['run-not-allowed'],
    cli: { handWritten: true },
  },
});
