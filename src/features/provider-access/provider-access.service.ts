import { AcpError, invalidField } from '../../contract/errors.ts';
import { noContent, ok } from '../../contract/operation.ts';
import { assertExpected } from '../../contract/save-query.ts';
import { mayNameSecret, type SecretNameRule, secretPrefix } from '../../core/config/index.ts';
import type { Handlers } from '../../core/context.ts';
import { isoTime } from '../../core/iso-time.ts';
import { labelsOf, labelsText } from '../../core/labels.ts';
import type { EgressPolicyRow, ProviderBindingRow } from '../../db/tables/access.ts';
import type { ModelProviders } from '../../providers/models/index.ts';
import { endpointProblem } from '../../providers/models/own-endpoint.ts';
import type { AuditLog } from '../audit/index.ts';
import { assertMayAddress } from '../tenants/index.ts';
import type { egressPolicyOperations, providerBindingOperations } from './provider-access.operations.ts';
import type { TenantEgressPolicyResponse, TenantProviderBindingResponse } from './provider-access.schema.ts';
import { providerAccessStore } from './provider-access.store.ts';
import { allowedNames, type TenantAccess } from './provider-access.ts';

export interface ProviderAccessServiceDeps {
  readonly access: TenantAccess;
  readonly providers: Pick<ModelProviders, 'get' | 'list' | 'takesCredential'>;
  readonly secret: (key: string) => string | null;
  readonly names: SecretNameRule;
  readonly allowPrivateEndpoints: boolean;
  /** Called when an endpoint is refused for its address. */
  readonly endpointRefused: () => void;
  readonly audit: Pick<AuditLog, 'change' | 'save'>;
  readonly now: () => number;
}

const about = (tenantId: string, provider: string) => ({ id: `${tenantId}:${provider}`, aboutTenant: tenantId });

export const providerBindingService = (deps: ProviderAccessServiceDeps): Handlers<typeof providerBindingOperations> => {
  const { access, providers, names, audit } = deps;
  const view = (row: ProviderBindingRow): TenantProviderBindingResponse => ({
    providerName: row.provider_name,
    apiKeyConfigurationName: row.api_key_configuration_name,
    endpoint: row.endpoint,
    // Whether a key has a value is not told for a name that the tenant may no longer use.
    resolved:
      mayNameSecret(names, row.tenant_id, row.api_key_configuration_name) &&
      deps.secret(row.api_key_configuration_name) !== null,
    updatedAt: isoTime(row.updated_at),
  });

  const assertBindable = (tenantId: string, provider: string): void => {
    if (providers.get(provider) === undefined)
      throw new AcpError('not-found', `There is no model provider "${provider}".`);
    if (!access.allows(tenantId, provider))
      throw new AcpError('provider-not-allowed', `The tenant may not call the provider "${provider}".`);
    if (!providers.takesCredential(provider)) throw invalidField('provider', 'is called without a credential');
  };

  return {
    async list(context, { params: { tenantId } }) {
      assertMayAddress(context.tenantId, tenantId, names.defaultTenantId);
      await access.refresh();
      return ok(access.bindingsOf(tenantId).map(view));
    },

    async save(context, { params: { tenantId, provider }, body }) {
      assertMayAddress(context.tenantId, tenantId, names.defaultTenantId);
      await access.refresh();
      assertBindable(tenantId, provider);
      const key = body.apiKeyConfigurationName;
      if (!mayNameSecret(names, tenantId, key))
        throw new AcpError(
          'configuration-key-not-allowed',
          `apiKeyConfigurationName must start with ${secretPrefix(names, tenantId)}`,
        );
      const endpoint = body.endpoint ?? null;
      const problem = endpoint === null ? null : endpointProblem(endpoint, deps.allowPrivateEndpoints);
      if (problem?.code === 'target-not-allowed') deps.endpointRefused();
      if (problem !== null) throw invalidField('endpoint', problem.message, problem.code);
      const before = access.binding(tenantId, provider);
      if (before?.api_key_configuration_name === key && before.endpoint === endpoint) return ok(view(before));
      const row: ProviderBindingRow = {
        tenant_id: tenantId,
        provider_name: provider,
        api_key_configuration_name: key,
        endpoint,
        updated_at: deps.now(),
      };
      await audit.change(context, async (stores, tell) => {
        await stores(providerAccessStore).bind(row);
        tell({ ...about(tenantId, provider), before: before === undefined ? null : view(before), after: view(row) });
      });
      access.bind(row);
      return ok(view(row));
    },

    async remove(context, { params: { tenantId, provider } }) {
      assertMayAddress(context.tenantId, tenantId, names.defaultTenantId);
      await access.refresh();
      const before = access.binding(tenantId, provider);
      await audit.change(context, async (stores, tell) => {
        if (before === undefined || !(await stores(providerAccessStore).unbind(tenantId, provider)))
          throw new AcpError('not-found', `The tenant has bound no credential to a provider "${provider}".`);
        tell({ ...about(tenantId, provider), before: view(before), after: null });
      });
      access.unbind(tenantId, provider);
      return noContent();
    },
  };
};

const policyView = (tenantId: string, row: EgressPolicyRow | undefined): TenantEgressPolicyResponse => ({
  tenantId,
  allowedProviders: row === undefined ? null : allowedNames(row),
  labels: row === undefined ? {} : labelsOf(row),
  updatedAt: row === undefined ? null : isoTime(row.updated_at),
});

export const egressPolicyService = ({
  access,
  providers,
  names,
  audit,
  now,
}: ProviderAccessServiceDeps): Handlers<typeof egressPolicyOperations> => ({
  async get(context, { params: { tenantId } }) {
    assertMayAddress(context.tenantId, tenantId, names.defaultTenantId);
    await access.refresh();
    return ok(policyView(tenantId, access.policy(tenantId)));
  },

  async save(context, { params: { tenantId }, query, body }) {
    assertMayAddress(context.tenantId, tenantId, names.defaultTenantId);
    await access.refresh();
    const allowed = [...new Set(body.allowedProviders)];
    const unknown = body.allowedProviders.findIndex((name) => providers.get(name) === undefined);
    if (unknown >= 0) {
      const names = providers.list().map(({ name }) => name);
      throw invalidField(`allowedProviders[${unknown}]`, `must be one of the providers ${names.join(', ')}`);
    }
    const before = access.policy(tenantId);
    const rule = { allowed_providers: JSON.stringify(allowed), labels: labelsText(body.labels) };
    if (before?.allowed_providers === rule.allowed_providers && before.labels === rule.labels)
      return ok(policyView(tenantId, before));
    const row = { tenant_id: tenantId, ...rule, updated_at: now() };
    await audit.save(context, query, async (stores, tell) => {
      const policies = stores(providerAccessStore);
      const current = query.expectedUpdatedAt === undefined ? before : await policies.policy(tenantId);
      assertExpected(query, current?.updated_at);
      if (query.dryRun === true) return;
      await policies.limit(row);
      const states = {
        before: before === undefined ? null : policyView(tenantId, before),
        after: policyView(tenantId, row),
      };
      tell({ id: tenantId, aboutTenant: tenantId, ...states });
    });
    if (query.dryRun !== true) access.limit(row);
    return ok(policyView(tenantId, row));
  },

  async remove(context, { params: { tenantId } }) {
    assertMayAddress(context.tenantId, tenantId, names.defaultTenantId);
    await access.refresh();
    const before = access.policy(tenantId);
    await audit.change(context, async (stores, tell) => {
      if (before === undefined || !(await stores(providerAccessStore).lift(tenantId)))
        throw new AcpError('not-found', 'The tenant has no egress policy.');
      tell({ id: tenantId, aboutTenant: tenantId, before: policyView(tenantId, before), after: null });
    });
    access.lift(tenantId);
    return noContent();
  },
});
