import { recognizableTypes } from '../media-types.ts';
import type { ConfigProblemCode } from './problem.ts';
import type { Config } from './schema.ts';
import { mayNameSecret } from './secret-owner.ts';
import { isInMemory, isLoopbackName } from './text-kinds.ts';

interface Finding {
  /** The key that the finding is shown at. */
  readonly key: string;
  readonly message: string;
  readonly code?: ConfigProblemCode;
}

/** A rule over more than one key. It is skipped while one of its keys has a problem of its own. */
export interface Check {
  readonly keys: readonly string[];
  readonly severity: 'error' | 'warning';
  run(config: Config): readonly Finding[];
}

const none: readonly Finding[] = [];
const nothingVisible = /^[\s\p{Default_Ignorable_Code_Point}]*$/u;
const when = (isWrong: boolean, key: string, message: string): readonly Finding[] =>
  isWrong ? [{ key, message }] : none;

/** A rule with one finding, which is shown at `key`. */
const rule = (
  keys: readonly string[],
  key: string,
  message: string,
  isWrong: (config: Config) => boolean,
  { severity = 'error', code }: Pick<Partial<Check>, 'severity'> & Pick<Finding, 'code'> = {},
): Check => ({
  keys,
  severity,
  run: (config) => (isWrong(config) ? [{ key, message, ...(code === undefined ? {} : { code }) }] : none),
});

/** Sections whose records name secrets, each below a prefix of its own. */
const secretOwners = ['Webhooks', 'Triggers', 'Mcp', 'TenantProviders'] as const;
const prefixKey = (section: string): string => `Service:${section}:AllowedConfigurationPrefix`;
const skillScripts = 'Service:Skills:Scripts';

export const generalChecks: readonly Check[] = [
  {
    keys: ['Host:RemoteAgents', prefixKey('Mcp'), 'Service:DefaultTenantId', 'Host:Tenancy:Enabled'],
    severity: 'error',
    run({ Host, Service }) {
      const names = {
        prefix: Service.Mcp.AllowedConfigurationPrefix,
        defaultTenantId: Service.DefaultTenantId,
        oneSegment: Host.Tenancy.Enabled,
      };
      return Object.entries(Host.RemoteAgents).flatMap(([name, { AuthorizationConfigurationKey: key }]) =>
        when(
          key !== null && !mayNameSecret(names, Service.DefaultTenantId, key),
          `Host:RemoteAgents:${name}:AuthorizationConfigurationKey`,
          `expected a key below ${names.prefix}`,
        ),
      );
    },
  },
  rule(
    ['Host:Oidc:Issuer', 'Host:Oidc:Audience'],
    'Host:Oidc',
    'expected both Issuer and Audience, or neither',
    ({ Host: { Oidc } }) => (Oidc.Issuer === null) !== (Oidc.Audience === null),
  ),
  rule(
    ['Host:Oidc:TenantClaim', 'Host:Tenancy:ClaimType'],
    'Host:Oidc:TenantClaim',
    'expected the same claim as Host:Tenancy:ClaimType, or only one of the two',
    ({ Host: { Oidc, Tenancy } }) =>
      Oidc.TenantClaim !== null && Tenancy.ClaimType !== null && Oidc.TenantClaim !== Tenancy.ClaimType,
  ),
  rule(
    ['Host:Health:LivePath', 'Host:Health:ReadyPath'],
    'Host:Health:ReadyPath',
    'expected another path than Host:Health:LivePath',
    ({ Host: { Health } }) => Health.LivePath !== null && Health.LivePath === Health.ReadyPath,
  ),
  rule(
    ['Host:Metrics:Path', 'Host:Health:LivePath', 'Host:Health:ReadyPath'],
    'Host:Metrics:Path',
    'expected another path than those of Host:Health',
    ({ Host: { Metrics, Health } }) =>
      Metrics.Path !== null && [Health.LivePath, Health.ReadyPath].includes(Metrics.Path),
  ),
  rule(
    ['Host:Url', 'Host:AllowRemoteAccess'],
    'Host:Url',
    'this address is open to other machines, but their calls are refused while Host:AllowRemoteAccess is false',
    ({ Host }) => !Host.AllowRemoteAccess && !isLoopbackName(new URL(Host.Url).hostname),
    { severity: 'warning', code: 'insecure' },
  ),
  {
    keys: [`${skillScripts}:Enabled`, `${skillScripts}:PlatformIsolationAcknowledged`],
    severity: 'error',
    run({ Host, Service: { Skills } }) {
      const isOn = Skills.Scripts.Enabled || Host.SkillScripts.Register;
      const key = Skills.Scripts.Enabled ? `${skillScripts}:Enabled` : 'Host:SkillScripts:Register';
      const message = `scripts need ${skillScripts}:PlatformIsolationAcknowledged: true`;
      return when(isOn && !Skills.Scripts.PlatformIsolationAcknowledged, key, message);
    },
  },
  rule(
    [`${skillScripts}:Enabled`, 'Host:SkillScripts:Register'],
    `${skillScripts}:Enabled`,
    'no script will run: that needs Host:SkillScripts:Register: true as well',
    ({ Host, Service: { Skills } }) => Skills.Scripts.Enabled && !Host.SkillScripts.Register,
    { severity: 'warning' },
  ),
  rule(
    ['Service:AgentGraph:ChildDeadline', 'Service:AgentGraph:WaitTimeout'],
    'Service:AgentGraph:WaitTimeout',
    'expected more than Service:AgentGraph:ChildDeadline',
    ({ Service: { AgentGraph } }) => {
      const { ChildDeadline, WaitTimeout } = AgentGraph;
      return ChildDeadline !== null && WaitTimeout !== null && WaitTimeout <= ChildDeadline;
    },
  ),
  {
    keys: ['Service:Pricing'],
    severity: 'error',
    run: ({ Service: { Pricing } }) =>
      Object.entries(Pricing.Models).flatMap(([provider, models]) =>
        Object.entries(models).flatMap(([model, price]) =>
          when(
            price.Input === null && price.Output === null,
            `Service:Pricing:${provider}:${model}`,
            'expected Input, Output or both',
          ),
        ),
      ),
  },
  rule(
    ['Service:Persistence:Provider', 'Service:Persistence:Postgres:ConnectionString'],
    'Service:Persistence:Postgres:ConnectionString',
    'this key is required when Service:Persistence:Provider is Postgres',
    ({ Service: { Persistence } }) =>
      Persistence.Provider === 'Postgres' && Persistence.Postgres.ConnectionString === null,
    { code: 'missing-value' },
  ),
  rule(
    ['Service:Persistence:Sqlite:ConnectionString'],
    'Service:Persistence:Sqlite:ConnectionString',
    'expected a file, or a shared in-memory URI such as file:acp?mode=memory&cache=shared: each connection to :memory: would see a database of its own',
    ({ Service: { Persistence } }) => {
      const location = Persistence.Sqlite.ConnectionString;
      return location !== null && isInMemory(location) && !/[?&]cache=shared\b/i.test(location);
    },
  ),
  rule(
    ['Service:Mcp:OAuthTokenStore', 'Service:AtRest:ActiveKeyId'],
    'Service:Mcp:OAuthTokenStore',
    'expected Memory, or a key to encrypt with (Service:AtRest:ActiveKeyId)',
    ({ Service: { Mcp, AtRest } }) => Mcp.OAuthTokenStore === 'Database' && AtRest.ActiveKeyId === null,
  ),
  rule(
    ['Service:RunReconciliation:HeartbeatInterval', 'Service:RunReconciliation:OrphanThreshold'],
    'Service:RunReconciliation:OrphanThreshold',
    'expected more than twice Service:RunReconciliation:HeartbeatInterval',
    ({ Service: { RunReconciliation } }) =>
      RunReconciliation.OrphanThreshold <= 2 * RunReconciliation.HeartbeatInterval,
  ),
  rule(
    ['Service:RunReconciliation:Enabled', 'Service:Persistence:Provider'],
    'Service:RunReconciliation:Enabled',
    'this is off, and on a store that processes share nobody else closes the runs of one that died: they stay Running',
    ({ Service: { RunReconciliation, Persistence } }) =>
      Persistence.Provider === 'Postgres' && !RunReconciliation.Enabled,
    { severity: 'warning' },
  ),
  rule(
    ['Service:RunContinuation:Enabled', 'Service:RunReconciliation:Enabled'],
    'Service:RunContinuation:Enabled',
    'this needs Service:RunReconciliation:Enabled: true',
    ({ Service: { RunContinuation, RunReconciliation } }) => RunContinuation.Enabled && !RunReconciliation.Enabled,
  ),
  rule(
    ['Service:Knowledge:ChunkSize', 'Service:Knowledge:ChunkOverlap'],
    'Service:Knowledge:ChunkOverlap',
    'expected less than half of Service:Knowledge:ChunkSize',
    ({ Service: { Knowledge } }) => 2 * Knowledge.ChunkOverlap >= Knowledge.ChunkSize,
  ),
  rule(
    ['Service:Knowledge:Dimensions', 'Service:Persistence:Provider'],
    'Service:Knowledge:Dimensions',
    'expected at most 4000 on PostgreSQL',
    // pgvector's index stops at 4000 half-precision dimensions.
    ({ Service: { Knowledge, Persistence } }) => Persistence.Provider === 'Postgres' && Knowledge.Dimensions > 4000,
  ),
  rule(
    ['Service:Knowledge:EmbeddingProvider', 'Service:Knowledge:EmbeddingModel'],
    'Service:Knowledge',
    'expected both EmbeddingProvider and EmbeddingModel, or neither',
    ({ Service: { Knowledge } }) => (Knowledge.EmbeddingProvider === null) !== (Knowledge.EmbeddingModel === null),
  ),
  {
    keys: ['Service:ContentGuard:Pattern'],
    severity: 'error',
    run: ({ Service: { ContentGuard } }) =>
      (ContentGuard.Pattern?.DeniedTerms ?? []).flatMap((term, index) =>
        when(
          nothingVisible.test(term),
          `Service:ContentGuard:Pattern:DeniedTerms:${index}`,
          'expected a term with a character that can be seen: this one would block every text',
        ),
      ),
  },
  {
    keys: ['Service:Attachments:AllowedMediaTypes'],
    severity: 'error',
    run: ({ Service: { Attachments } }) =>
      Attachments.AllowedMediaTypes.flatMap((type, index) =>
        when(
          !recognizableTypes.includes(type.toLowerCase()),
          `Service:Attachments:AllowedMediaTypes:${index}`,
          `expected one of ${recognizableTypes.join(', ')}: no other type is recognized by the bytes of a file`,
        ),
      ),
  },
  rule(
    ['Service:Attachments:Store', 'Service:Attachments:S3:Bucket'],
    'Service:Attachments:S3:Bucket',
    'this key is required when Service:Attachments:Store is S3',
    ({ Service: { Attachments } }) => Attachments.Store === 'S3' && Attachments.S3.Bucket === null,
    { code: 'missing-value' },
  ),
  rule(
    ['Service:Attachments:Store', 'Service:Attachments:Folder', 'Service:Persistence:Provider'],
    'Service:Attachments:Folder',
    'this key is required when Service:Attachments:Store is Folder and the store is no file that a folder could lie beside',
    ({ Service: { Attachments, Persistence } }) =>
      Attachments.Store === 'Folder' && Attachments.Folder === null && Persistence.Provider === 'Postgres',
    { code: 'missing-value' },
  ),
  rule(
    ['Service:Attachments:Store', 'Service:Persistence:Provider'],
    'Service:Attachments:Store',
    'a store in memory keeps the bytes of attachments in memory, too',
    ({ Service: { Attachments, Persistence } }) => Attachments.Store !== null && Persistence.Provider === 'Memory',
    { severity: 'warning' },
  ),
  rule(
    ['Service:Attachments:S3:AccessKeyId', 'Service:Attachments:S3:SecretAccessKey'],
    'Service:Attachments:S3',
    'expected both AccessKeyId and SecretAccessKey, or neither',
    ({ Service: { Attachments } }) =>
      (Attachments.S3.AccessKeyId === null) !== (Attachments.S3.SecretAccessKey === null),
  ),
  rule(
    ['Service:Images:Provider', 'Service:Images:Model'],
    'Service:Images',
    'expected both Provider and Model, or neither',
    ({ Service: { Images } }) => (Images.Provider === null) !== (Images.Model === null),
  ),
  {
    keys: secretOwners.map(prefixKey),
    severity: 'error',
    run({ Service }) {
      const prefixes = secretOwners.map((name) => Service[name].AllowedConfigurationPrefix.toLowerCase());
      return secretOwners.flatMap((name, index) => {
        const first = secretOwners[prefixes.indexOf(prefixes[index] ?? '')] ?? name;
        return when(first !== name, prefixKey(name), `expected another prefix than ${prefixKey(first)}`);
      });
    },
  },
  rule(
    ['Service:OnlineEvaluation:Enabled', 'Service:OnlineEvaluation:SampleRate', 'Host:Modules'],
    'Service:OnlineEvaluation:Enabled',
    'no run will be judged: there is no module in Host:Modules that could bring a judge',
    ({ Host, Service: { OnlineEvaluation } }) =>
      OnlineEvaluation.Enabled && OnlineEvaluation.SampleRate > 0 && Host.Modules.length === 0,
    { severity: 'warning' },
  ),
  rule(
    ['Service:AtRest:ActiveKeyId', 'Service:AtRest:Keys'],
    'Service:AtRest:ActiveKeyId',
    'expected the id of a key in Service:AtRest:Keys',
    ({ Service: { AtRest } }) => AtRest.ActiveKeyId !== null && AtRest.Keys[AtRest.ActiveKeyId] === undefined,
  ),
];
