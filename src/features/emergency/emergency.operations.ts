import Type from 'typebox';
import { defineOperations } from '../../contract/operation.ts';
import {
  EmergencyResumeRequest,
  EmergencyResumeResult,
  EmergencyStop,
  EmergencyStopRequest,
  EmergencyStopResult,
} from './emergency.schema.ts';

const operate = { tag: 'Emergency', role: 'Admin', scope: 'SecurityAdmin' } as const;

export const emergencyOperations = defineOperations({
  status: {
    ...operate,
    method: 'GET',
    path: '/api/emergency',
    summary: 'List the stops in force that are about the tenant, oldest first',
    description: 'A stop is of the whole service, of a tenant or of an agent, with who gave it, when and why.',
    responses: { 200: Type.Array(EmergencyStop) },
    errors: [],
    cli: {
      command: 'emergency status',
      columns: ['scope', 'tenantId', 'agentName', 'reason', 'stoppedBy', 'stoppedAt'],
    },
  },
  stop: {
    ...operate,
    method: 'POST',
    path: '/api/emergency/stop',
    summary: 'Stop agents at once: runs are canceled, queued ones held, new ones refused',
    description:
      'The stop is stored, and so outlives a restart; it is lifted by a resume of the same scope only. The answer counts what it has ended and held.',
    body: EmergencyStopRequest,
    responses: { 200: EmergencyStopResult },
    errors: ['not-found', 'tenant-rejected'],
    audit: { action: 'emergency.stop', entity: 'emergency', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
  resume: {
    ...operate,
    method: 'POST',
    path: '/api/emergency/resume',
    summary: 'Let agents run again that were stopped with the same scope',
    description: 'Held runs go on, and new ones are accepted. What another stop covers stays stopped.',
    body: EmergencyResumeRequest,
    responses: { 200: EmergencyResumeResult },
    errors: ['not-found', 'tenant-rejected'],
    audit: { action: 'emergency.resume', entity: 'emergency', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
});
