import { recognizableTypes } from '../media-types.ts';
import type { ConfigProblemCode } from './problem.ts';
import type { Config } from './schema.ts';
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
const when = (isWrong: boolean, key: string, message: string, code?: ConfigProblemCode): readonly Finding[] =>
  isWrong ? [{ key, message, ...(code === undefined ? {} : { code }) }] : none;

export const generalChecks: readonly Check[] = [
  {
    keys: ['Host:Oidc:Issuer', 'Host:Oidc:Audience'],
    severity: 'error',
    run: ({ Host: { Oidc } }) =>
      when(
        (Oidc.Issuer === null) !== (Oidc.Audience === null),
        'Host:Oidc',
        'expected both Issuer and Audience, or neither',
      ),
  },
  {
    keys: ['Host:Oidc:TenantClaim', 'Host:Tenancy:ClaimType'],
    severity: 'error',
    run({ Host: { Oidc, Tenancy } }) {
      const isBoth = Oidc.TenantClaim !== null && Tenancy.ClaimType !== null;
      const message = 'expected the same claim as Host:Tenancy:ClaimType, or only one of the two';
      return when(isBoth && Oidc.TenantClaim !== Tenancy.ClaimType, 'Host:Oidc:TenantClaim', message);
    },
  },
  {
    keys: ['Host:Health:LivePath', 'Host:Health:ReadyPath'],
    severity: 'error',
    run({ Host: { Health } }) {
      const isSame = Health.LivePath !== null && Health.LivePath === Health.ReadyPath;
      return when(isSame, 'Host:Health:ReadyPath', 'expected another path than Host:Health:LivePath');
    },
  },
  {
    keys: ['Host:Metrics:Path', 'Host:Health:LivePath', 'Host:Health:ReadyPath'],
    severity: 'error',
    run({ Host: { Metrics, Health } }) {
      const isSame = Metrics.Path !== null && [Health.LivePath, Health.ReadyPath].includes(Metrics.Path);
      return when(isSame, 'Host:Metrics:Path', 'expected another path than those of Host:Health');
    },
  },
  {
    keys: ['Host:Url', 'Host:AllowRemoteAccess'],
    severity: 'warning',
    run({ Host }) {
      const message =
        'this address is open to other machines, but their calls are refused while Host:AllowRemoteAccess is false';
      return when(
        !Host.AllowRemoteAccess && !isLoopbackName(new URL(Host.Url).hostname),
        'Host:Url',
        message,
        'insecure',
      );
    },
  },
  {
    keys: ['Service:Skills:Scripts:Enabled', 'Service:Skills:Scripts:PlatformIsolationAcknowledged'],
    severity: 'error',
    run({ Host, Service: { Skills } }) {
      const isOn = Skills.Scripts.Enabled || Host.SkillScripts.Register;
      const key = Skills.Scripts.Enabled ? 'Service:Skills:Scripts:Enabled' : 'Host:SkillScripts:Register';
      const message = 'scripts need Service:Skills:Scripts:PlatformIsolationAcknowledged: true';
      return when(isOn && !Skills.Scripts.PlatformIsolationAcknowledged, key, message);
    },
  },
  {
    keys: ['Service:Skills:Scripts:Enabled', 'Host:SkillScripts:Register'],
    severity: 'warning',
    run({ Host, Service: { Skills } }) {
      const message = 'no script will run: that needs Host:SkillScripts:Register: true as well';
      return when(Skills.Scripts.Enabled && !Host.SkillScripts.Register, 'Service:Skills:Scripts:Enabled', message);
    },
  },
  {
    keys: ['Service:AgentGraph:ChildDeadline', 'Service:AgentGraph:WaitTimeout'],
    severity: 'error',
    run({ Service: { AgentGraph } }) {
      const { ChildDeadline, WaitTimeout } = AgentGraph;
      const isShort = ChildDeadline !== null && WaitTimeout !== null && WaitTimeout <= ChildDeadline;
      return when(isShort, 'Service:AgentGraph:WaitTimeout', 'expected more than Service:AgentGraph:ChildDeadline');
    },
  },
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
  {
    keys: ['Service:Persistence:Provider', 'Service:Persistence:Postgres:ConnectionString'],
    severity: 'error',
    run({ Service: { Persistence } }) {
      const isMissing = Persistence.Provider === 'Postgres' && Persistence.Postgres.ConnectionString === null;
      const message = 'this key is required when Service:Persistence:Provider is Postgres';
      return when(isMissing, 'Service:Persistence:Postgres:ConnectionString', message, 'missing-value');
    },
  },
  {
    keys: ['Service:Persistence:Sqlite:ConnectionString'],
    severity: 'error',
    run({ Service: { Persistence } }) {
      const location = Persistence.Sqlite.ConnectionString;
      const isBare = location !== null && isInMemory(location) && !/[?&]cache=shared\b/i.test(location);
      const message =
        'expected a file, or a shared in-memory URI such as file:acp?mode=memory&cache=shared: each connection to :memory: would see a database of its own';
      return when(isBare, 'Service:Persistence:Sqlite:ConnectionString', message);
    },
  },
  {
    keys: ['Service:RunReconciliation:HeartbeatInterval', 'Service:RunReconciliation:OrphanThreshold'],
    severity: 'error',
    run({ Service: { RunReconciliation: settings } }) {
      const isShort = settings.OrphanThreshold <= 2 * settings.HeartbeatInterval;
      const message = 'expected more than twice Service:RunReconciliation:HeartbeatInterval';
      return when(isShort, 'Service:RunReconciliation:OrphanThreshold', message);
    },
  },
  {
    keys: ['Service:RunContinuation:Enabled', 'Service:RunReconciliation:Enabled'],
    severity: 'error',
    run({ Service: { RunContinuation, RunReconciliation } }) {
      const isAlone = RunContinuation.Enabled && !RunReconciliation.Enabled;
      return when(isAlone, 'Service:RunContinuation:Enabled', 'this needs Service:RunReconciliation:Enabled: true');
    },
  },
  {
    keys: ['Service:Knowledge:ChunkSize', 'Service:Knowledge:ChunkOverlap'],
    severity: 'error',
    run({ Service: { Knowledge } }) {
      const isLong = 2 * Knowledge.ChunkOverlap >= Knowledge.ChunkSize;
      return when(isLong, 'Service:Knowledge:ChunkOverlap', 'expected less than half of Service:Knowledge:ChunkSize');
    },
  },
  {
    keys: ['Service:Knowledge:Dimensions', 'Service:Persistence:Provider'],
    severity: 'error',
    run({ Service: { Knowledge, Persistence } }) {
      // pgvector's index stops at 4000 half-precision dimensions.
      const isLong = Persistence.Provider === 'Postgres' && Knowledge.Dimensions > 4000;
      return when(isLong, 'Service:Knowledge:Dimensions', 'expected at most 4000 on PostgreSQL');
    },
  },
  {
    keys: ['Service:Knowledge:EmbeddingProvider', 'Service:Knowledge:EmbeddingModel'],
    severity: 'error',
    run({ Service: { Knowledge } }) {
      const isHalf = (Knowledge.EmbeddingProvider === null) !== (Knowledge.EmbeddingModel === null);
      return when(isHalf, 'Service:Knowledge', 'expected both EmbeddingProvider and EmbeddingModel, or neither');
    },
  },
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
  {
    keys: ['Service:Images:Provider', 'Service:Images:Model'],
    severity: 'error',
    run({ Service: { Images } }) {
      const isHalf = (Images.Provider === null) !== (Images.Model === null);
      return when(isHalf, 'Service:Images', 'expected both Provider and Model, or neither');
    },
  },
  {
    keys: ['Webhooks', 'Triggers', 'Mcp', 'TenantProviders'].map(
      (name) => `Service:${name}:AllowedConfigurationPrefix`,
    ),
    severity: 'error',
    run({ Service }) {
      const prefixes = [
        ['Service:Webhooks:AllowedConfigurationPrefix', Service.Webhooks.AllowedConfigurationPrefix],
        ['Service:Triggers:AllowedConfigurationPrefix', Service.Triggers.AllowedConfigurationPrefix],
        ['Service:Mcp:AllowedConfigurationPrefix', Service.Mcp.AllowedConfigurationPrefix],
        ['Service:TenantProviders:AllowedConfigurationPrefix', Service.TenantProviders.AllowedConfigurationPrefix],
      ] as const;
      return prefixes.flatMap(([key, prefix], index) => {
        const other = prefixes.slice(0, index).find(([, value]) => value.toLowerCase() === prefix.toLowerCase());
        return other === undefined ? none : [{ key, message: `expected another prefix than ${other[0]}` }];
      });
    },
  },
  {
    keys: ['Service:OnlineEvaluation:Enabled', 'Service:OnlineEvaluation:SampleRate', 'Host:Modules'],
    severity: 'warning',
    run({ Host, Service: { OnlineEvaluation } }) {
      const isIdle = OnlineEvaluation.Enabled && OnlineEvaluation.SampleRate > 0 && Host.Modules.length === 0;
      const message = 'no run will be judged: there is no module in Host:Modules that could bring a judge';
      return when(isIdle, 'Service:OnlineEvaluation:Enabled', message);
    },
  },
  {
    keys: ['Service:AtRest:ActiveKeyId', 'Service:AtRest:Keys'],
    severity: 'error',
    run({ Service: { AtRest } }) {
      const isMissing = AtRest.ActiveKeyId !== null && AtRest.Keys[AtRest.ActiveKeyId] === undefined;
      return when(isMissing, 'Service:AtRest:ActiveKeyId', 'expected the id of a key in Service:AtRest:Keys');
    },
  },
];
