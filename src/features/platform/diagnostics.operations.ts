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
    description:
      'Versions, store, worker, providers and modules of the process that answers, and which configuration keys resolve. No secret, address or value of a setting is in it.',
    responses: { 200: DiagnosticsReport },
    errors: ['not-found'],
    cli: { command: 'diagnostics' },
  },
});
