import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../core/config/schema.ts';
import type { IdentityOptions } from '../features/security/index.ts';
import type { ProtectionSettings } from '../providers/models/index.ts';
import type { JobWorkerOptions } from '../scheduler/job-worker.ts';

/** Who may call, as the host has configured it. */
export const identityOptions = ({ Service, Host }: Config): IdentityOptions => ({
  allowRemoteAccess: Host.AllowRemoteAccess,
  authToken: Host.AuthToken,
  defaultTenantId: Service.DefaultTenantId,
  tenancy: {
    enabled: Host.Tenancy.Enabled,
    allowHeaderResolution: Host.Tenancy.AllowHeaderResolution,
    headerName: Host.Tenancy.HeaderName,
    allowedTenants: Host.Tenancy.AllowedTenants,
  },
});

/** How calls of model providers are protected. */
export const modelProtection = ({ Service: { CircuitBreaker, ModelConcurrency } }: Config): ProtectionSettings => ({
  circuit: {
    enabled: CircuitBreaker.Enabled,
    failureThreshold: CircuitBreaker.FailureThreshold,
    breakDurationMs: CircuitBreaker.BreakDuration,
  },
  maxConcurrentCalls: ModelConcurrency.MaxConcurrentCallsPerProvider,
});

export const jobWorkerOptions = ({ Service: { Scheduling } }: Config): JobWorkerOptions => ({
  owner: `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`,
  maxConcurrentJobs: Scheduling.MaxConcurrentJobs,
  pollIntervalMs: Scheduling.PollInterval,
  leaseDurationMs: Scheduling.LeaseDuration,
  lanes: Scheduling.Lanes,
  maxConcurrentJobsPerLane: Scheduling.MaxConcurrentJobsPerLane,
});
