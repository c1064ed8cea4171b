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
    summary: 'List the stops in force that affect the tenant, oldest first',
    description: 'A stop covers the service, a tenant or an agent, and shows who requested it, when and why.',
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
    summary: 'Stop agents at once: cancel runs, hold queued runs, reject new runs',
    description:
      'The stop is stored and survives a restart; only a resume of the same scope lifts it. The response counts the runs that it ended and held.',
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
    summary: 'Lift the stop of the same scope',
    description: 'Held runs continue, and new runs are accepted. Agents that another stop covers remain stopped.',
    body: EmergencyResumeRequest,
    responses: { 200: EmergencyResumeResult },
    errors: ['not-found', 'tenant-rejected'],
    audit: { action: 'emergency.resume', entity: 'emergency', mode: 'fail-closed' },
    cli: { handWritten: true },
  },
});
