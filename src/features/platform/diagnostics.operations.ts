import { defineOperations } from '../../contract/operation.ts';
import { DiagnosticsReport } from './diagnostics.schema.ts';

export const diagnosticsOperations = defineOperations({
  get: {
    tag: 'Platform',
    role: 'Reader',
    scope: 'PlatformRead',
    method: 'GET',
    path: '/api/diagnostics',
    summary: 'What this process runs on and how its parts are; only with Host:EnableDiagnosticsEndpoint',
    responses: { 200: DiagnosticsReport },
    errors: ['not-found'],
    cli: { command: 'diagnostics' },
  },
});
