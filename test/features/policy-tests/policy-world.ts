import type { Client } from '../../../src/client/client.ts';
import type { PolicyTestReport, PolicyTestRequest } from '../../../src/features/policy-tests/policy-tests.schema.ts';
import type { TestApp } from '../../support/app.ts';

export const policyTest = async (client: Client, body: PolicyTestRequest): Promise<PolicyTestReport> =>
  (await client.policyTests.run({ body })).body;

/** A client of the tenant `acme` in a service whose runs are those of the default tenant. */
export const otherTenant = async (app: TestApp): Promise<Client> => {
  const { plaintextKey } = (
    await app.inTenant('acme').keys.create({ body: { name: 'k', scopes: ['RunsRead'], role: 'Operator' } })
  ).body;
  return app.clientFor(plaintextKey);
};

export const tenantHost = (token: string) => ({
  host: { AuthToken: token, Tenancy: { Enabled: true, AllowHeaderResolution: true } },
  token,
});
