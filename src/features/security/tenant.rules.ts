import { AcpError } from '../../contract/errors.ts';
import { tenantPattern } from '../../contract/schema.ts';
import type { CallerRequest } from '../../core/caller/caller-request.ts';

export interface TenancyOptions {
  /** False: every caller is in the default tenant, except that an API key stands for its own. */
  readonly enabled: boolean;
  readonly allowHeaderResolution: boolean;
  readonly headerName: string;
  /** Empty: every tenant. */
  readonly allowedTenants: readonly string[];
}

/** What the credential says about the tenant. */
export interface CredentialTenant {
  /** Of the key, or of the token's claim; null when it names none. */
  readonly tenantId: string | null;
  /** False: a header cannot name the tenant in its place. */
  readonly headerMayName: boolean;
}

export type TenantResolver = (request: CallerRequest, credential: CredentialTenant) => string;

const slug = new RegExp(tenantPattern);

const readHeader = (request: CallerRequest, name: string): string | null => {
  const value = request.header(name);
  if (value === undefined) return null;
  if (request.headerCount(name) > 1 || !slug.test(value))
    throw new AcpError('invalid-tenant', `The header ${name} must be sent once and name a tenant.`);
  return value;
};

/** True when no header can change the tenant, so that it can be resolved once for all requests. */
export const tenantIsFixed = (options: TenancyOptions): boolean => !(options.enabled && options.allowHeaderResolution);

export const tenantResolver = (options: TenancyOptions, defaultTenantId: string): TenantResolver => {
  const allowed = new Set(options.allowedTenants);
  const header = tenantIsFixed(options) ? null : options.headerName.toLowerCase();
  return (request, credential) => {
    const named = header === null ? null : readHeader(request, header);
    if (named !== null && credential.tenantId !== null && named !== credential.tenantId)
      throw new AcpError('tenant-mismatch', 'The header names another tenant than the credential.');
    const tenantId = credential.tenantId ?? (credential.headerMayName ? named : null) ?? defaultTenantId;
    if (allowed.size > 0 && !allowed.has(tenantId))
      throw new AcpError('tenant-rejected', 'The tenant of this request is not served here.');
    return tenantId;
  };
};
