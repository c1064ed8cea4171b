import type { Caller, Principal } from '../../core/context.ts';
import type { IdentityOptions } from './identity.service.ts';
import type { WhoamiReasons } from './keys.schema.ts';

export interface WhoamiRules {
  readonly options: IdentityOptions;
  /** Modules decide the role of a token, not its claim. */
  readonly rolesByPolicy: boolean;
}

const identityReason = ({ kind, apiKey }: Principal, { oidc }: IdentityOptions): string => {
  switch (kind) {
    case 'Anonymous':
      return 'No credential was sent, and callers of this machine need none: Host:AnonymousLoopback is on.';
    case 'Token':
      return 'The credential is the shared token, Host:AuthToken.';
    case 'ApiKey':
      return `The credential is the API key "${apiKey?.name ?? ''}".`;
    case 'Oidc':
      return `The credential is a token of ${oidc?.issuer ?? 'Host:Oidc:Issuer'} for the audience ${oidc?.audience ?? ''}.`;
    case 'Host':
      return 'No service was asked: the call opened the store itself, as whoever can read it may.';
  }
};

const roleReason = ({ kind, role }: Principal, { options, rolesByPolicy }: WhoamiRules): string => {
  switch (kind) {
    case 'Anonymous':
      return 'Callers of this machine are administrators.';
    case 'Token':
      return 'The shared token has all rights.';
    case 'ApiKey':
      return 'The key was made with this role and these scopes; both limit it.';
    case 'Host':
      return 'Whoever can open the store has all rights.';
    case 'Oidc': {
      const source = rolesByPolicy
        ? 'The role policies of the modules (Host:RequireRolePolicies)'
        : `The claim "${options.oidc?.roleClaim ?? ''}" of the token (Host:Oidc:RoleClaim)`;
      return role === null
        ? `${source} ${rolesByPolicy ? 'give' : 'gives'} none of Reader, Operator and Admin, so that no operation with a role is allowed.`
        : `${source} ${rolesByPolicy ? 'give' : 'gives'} it; all scopes go with it.`;
    }
  }
};

const tenantReason = ({ principal, tenantId }: Caller, { defaultTenantId, oidc, tenancy }: IdentityOptions): string => {
  if (principal.kind === 'ApiKey') return 'A key works in the tenant that it was made in.';
  if (principal.kind === 'Host') return 'A command without a service works in the default tenant.';
  if (!tenancy.enabled) return 'There is one tenant for all but API keys: Host:Tenancy:Enabled is off.';
  const isDefault = tenantId === defaultTenantId;
  if (principal.kind === 'Oidc') {
    const claim = oidc?.tenantClaim ?? null;
    return claim === null
      ? 'Tokens name no tenant here, so that it is the default one: Host:Oidc:TenantClaim is not set.'
      : isDefault
        ? `The claim "${claim}" of the token names it, or the token has none: then it is the default one.`
        : `The claim "${claim}" of the token names it.`;
  }
  if (!tenancy.allowHeaderResolution)
    return 'The credential names no tenant and headers may not, so that it is the default one.';
  return isDefault
    ? `The header ${tenancy.headerName} names it, or was not sent: then it is the default one.`
    : `The header ${tenancy.headerName} names it.`;
};

/** Explains identity, role and tenant of a caller in a sentence each, without anything of the credential itself. */
export const reasonsOf = (caller: Caller, rules: WhoamiRules): WhoamiReasons => ({
  identity: identityReason(caller.principal, rules.options),
  role: roleReason(caller.principal, rules),
  tenant: tenantReason(caller, rules.options),
});
