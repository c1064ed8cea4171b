import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { Config } from '../core/config/schema.ts';
import type { TelemetrySettings } from '../core/telemetry/telemetry.ts';
import type { IdentityOptions } from '../features/security/index.ts';
import type { AnswerLimits, ProtectionSettings } from '../providers/models/index.ts';
import type { JobWorkerOptions } from '../scheduler/job-worker.ts';

const oidcOptions = ({ Service, Host: { Oidc, Tenancy } }: Config): IdentityOptions['oidc'] =>
  Oidc.Issuer === null || Oidc.Audience === null
    ? null
    : {
        issuer: Oidc.Issuer,
        audience: Oidc.Audience,
        roleClaim: Oidc.RoleClaim,
        tenantClaim: Tenancy.Enabled ? (Tenancy.ClaimType ?? Oidc.TenantClaim) : null,
        actorClaim: Service.Audit.ActorClaimType,
      };

/** Who may call, as the host has configured it. */
export const identityOptions = (config: Config): IdentityOptions => ({
  allowRemoteAccess: config.Host.AllowRemoteAccess,
  anonymousLoopback: config.Host.AnonymousLoopback,
  authToken: config.Host.AuthToken,
  defaultTenantId: config.Service.DefaultTenantId,
  tenancy: {
    enabled: config.Host.Tenancy.Enabled,
    allowHeaderResolution: config.Host.Tenancy.AllowHeaderResolution,
    headerName: config.Host.Tenancy.HeaderName,
    allowedTenants: config.Host.Tenancy.AllowedTenants,
  },
  oidc: oidcOptions(config),
});

export const telemetrySettings = ({ Service: { Observability } }: Config): TelemetrySettings => ({
  enabled: Observability.Enabled,
  persistSpans: Observability.PersistSpans,
  successSampleRatio: Observability.SuccessSampleRatio,
  alwaysPersistFailures: Observability.AlwaysPersistFailures,
  maxSpansPerRun: Observability.MaxSpansPerRun,
  recordSensitiveData: Observability.RecordSensitiveData,
  includeAgentVersion: Observability.IncludeAgentVersionTag,
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

/** What one answer of a model provider may take. */
export const answerLimits = ({ Service: { ModelAnswers } }: Config): AnswerLimits => ({
  maxBytes: ModelAnswers.MaxBytes,
  maxStreamBytes: ModelAnswers.MaxStreamBytes,
  stallMs: ModelAnswers.StallTimeout,
});

/** Unique among all processes that were ever started: host, process id and a random suffix. */
export const processName = (): string => `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`;

export const jobWorkerOptions = ({ Service: { Scheduling } }: Config): JobWorkerOptions => ({
  owner: processName(),
  maxConcurrentJobs: Scheduling.MaxConcurrentJobs,
  pollIntervalMs: Scheduling.PollInterval,
  leaseDurationMs: Scheduling.LeaseDuration,
  lanes: Scheduling.Lanes,
  maxConcurrentJobsPerLane: Scheduling.MaxConcurrentJobsPerLane,
});
