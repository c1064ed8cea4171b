import { defineOperations } from '../../contract/operation.ts';
import { DiagnosticsReport } from './diagnostics.schema.ts';

export const diagnosticsOperations = defineOperations({
  get: {
    tag: 'Platform',
    role: 'Reader',
    scope: 'PlatformRead',
    method: 'GET',
    path: '/api/diagnostics',
    summary: 'Show the runtime and state of this process; only with Host:EnableDiagnosticsEndpoint',
    description:
      'Shows versions, store, worker, providers and modules of the process that responds, and the configuration keys that resolve. Contains no secret, address or value of a setting.',
    responses: { 200: DiagnosticsReport },
    errors: ['not-found'],
    cli: { command: 'diagnostics' },
  },
});
